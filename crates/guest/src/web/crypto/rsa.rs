//! RSA: PKCS #1 v1.5 and PSS signatures, and OAEP.
//!
//! A key is a list of numbers, big-endian bytes: `n e`, and of a private one `d p q dp dq qi` besides.

use super::{Random, answer, answer_list, bytes, with_hash};
use crate::{
    engine::js::{Array, Ctx, Object, Result, Value, function::Func},
    host, raw,
};
use rsa::{
    BigUint, Pkcs1v15Sign, Pss, RsaPrivateKey, RsaPublicKey, hazmat,
    pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey},
    traits::{PrivateKeyParts, PublicKeyParts},
};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// The longest modulus, in bits, that a key may have: what is done with one takes as long as its length to the power of 3,
/// to find one even longer.
const MODULUS_BITS_MAX: usize = 4096;

pub(super) fn install(object: &Object<'_>) -> Result<()> {
    object.set("rsaGenerate", Func::from(generate))?;
    object.set("rsaCheck", Func::from(check))?;
    object.set("rsaRead", Func::from(read))?;
    object.set("rsaWrite", Func::from(write))?;
    object.set("rsaSign", Func::from(sign))?;
    object.set("rsaVerify", Func::from(verify))?;
    object.set("rsaEncrypt", Func::from(encrypt))?;
    object.set("rsaDecrypt", Func::from(decrypt))
}

fn public_parts(key: &impl PublicKeyParts) -> Vec<Vec<u8>> {
    vec![key.n().to_bytes_be(), key.e().to_bytes_be()]
}

fn private_parts(key: &RsaPrivateKey) -> Option<Vec<Vec<u8>>> {
    let [p, q] = key.primes() else { return None };
    let mut parts = public_parts(key);
    let rest = [key.d(), p, q, key.dp()?, key.dq()?, &key.crt_coefficient()?];
    parts.extend(rest.map(BigUint::to_bytes_be));
    Some(parts)
}

fn numbers(parts: &Array<'_>) -> Option<Vec<BigUint>> {
    (0..parts.len())
        .map(|at| Some(BigUint::from_bytes_be(&bytes(&parts.get(at).ok()?))))
        .collect()
}

fn public_key(parts: &Array<'_>) -> Option<RsaPublicKey> {
    let numbers = numbers(parts)?;
    let [n, e, ..] = &numbers[..] else {
        return None;
    };
    RsaPublicKey::new_with_max_size(n.clone(), e.clone(), MODULUS_BITS_MAX).ok()
}

fn private_key(parts: &Array<'_>) -> Option<RsaPrivateKey> {
    let numbers = numbers(parts)?;
    let [n, e, d, p, q, ..] = &numbers[..] else {
        return None;
    };
    if n.bits() > MODULUS_BITS_MAX {
        return None;
    }
    RsaPrivateKey::from_components(n.clone(), e.clone(), d.clone(), vec![p.clone(), q.clone()]).ok()
}

/// `host.rsaGenerate(bits, exponent) -> parts`
fn generate<'js>(ctx: Ctx<'js>, bits: usize, exponent: Value<'js>) -> Result<Value<'js>> {
    let exponent = BigUint::from_bytes_be(&bytes(&exponent));
    let key = (bits <= MODULUS_BITS_MAX)
        .then(|| RsaPrivateKey::new_with_exp(&mut Random, bits, &exponent).ok())
        .flatten();
    answer_list(&ctx, key.and_then(|key| private_parts(&key)))
}

/// `host.rsaCheck(isPrivate, parts) -> parts`, all of them, or undefined where they belong to no key.
fn check<'js>(ctx: Ctx<'js>, is_private: bool, parts: Array<'js>) -> Result<Value<'js>> {
    let checked = match is_private {
        true => private_key(&parts).and_then(|key| private_parts(&key)),
        false => public_key(&parts).map(|key| public_parts(&key)),
    };
    answer_list(&ctx, checked)
}

/// `host.rsaRead(isPrivate, der) -> parts`: from PKCS #8 or SPKI.
fn read<'js>(ctx: Ctx<'js>, is_private: bool, der: Value<'js>) -> Result<Value<'js>> {
    let der = bytes(&der);
    let parts = match is_private {
        true => RsaPrivateKey::from_pkcs8_der(&der)
            .ok()
            .and_then(|key| private_parts(&key)),
        false => RsaPublicKey::from_public_key_der(&der)
            .ok()
            .map(|key| public_parts(&key)),
    };
    answer_list(&ctx, parts)
}

/// `host.rsaWrite(isPrivate, parts) -> der`: PKCS #8 or SPKI.
fn write<'js>(ctx: Ctx<'js>, is_private: bool, parts: Array<'js>) -> Result<Value<'js>> {
    let der = match is_private {
        true => private_key(&parts)
            .and_then(|key| key.to_pkcs8_der().ok())
            .map(|der| der.as_bytes().to_vec()),
        false => public_key(&parts)
            .and_then(|key| key.to_public_key_der().ok())
            .map(|der| der.as_bytes().to_vec()),
    };
    answer(&ctx, der)
}

/// `host.rsaSign(hash, parts, data, saltLength) -> signature`: PSS with a salt of so many bytes, PKCS #1 v1.5 with
/// undefined.
fn sign<'js>(
    ctx: Ctx<'js>,
    hash: Value<'js>,
    parts: Array<'js>,
    data: Value<'js>,
    salt_length: Option<usize>,
) -> Result<Value<'js>> {
    let data = bytes(&data);
    let signature = with_hash!(hash, Hash => private_key(&parts).and_then(|key| {
        let digest = Hash::digest(&data);
        match salt_length {
            None => key.sign_with_rng(&mut Random, Pkcs1v15Sign::new::<Hash>(), &digest).ok(),
            // The crate takes a longer one for a mistake of the program's.
            Some(length) if length + digest.len() + 2 > key.size() => None,
            Some(length) => key.sign_with_rng(&mut Random, Pss::new_with_salt::<Hash>(length), &digest).ok(),
        }
    }));
    answer(&ctx, signature)
}

/// `host.rsaVerify(hash, parts, signature, data, saltLength) -> boolean`
fn verify<'js>(
    hash: Value<'js>,
    parts: Array<'js>,
    signature: Value<'js>,
    data: Value<'js>,
    salt_length: Option<usize>,
) -> bool {
    let (signature, data) = (bytes(&signature), bytes(&data));
    let is_right = with_hash!(hash, Hash => public_key(&parts).and_then(|key| {
        let digest = Hash::digest(&data);
        match salt_length {
            None => key.verify(Pkcs1v15Sign::new::<Hash>(), &digest, &signature).ok(),
            Some(length) if length + digest.len() + 2 > key.size() => None,
            Some(length) => key.verify(Pss::new_with_salt::<Hash>(length), &digest, &signature).ok(),
        }
    }));
    is_right.is_some()
}

/// `host.rsaEncrypt(hash, parts, data, label) -> ArrayBuffer`, by OAEP.
fn encrypt<'js>(
    ctx: Ctx<'js>,
    hash: Value<'js>,
    parts: Array<'js>,
    data: Value<'js>,
    label: Value<'js>,
) -> Result<Value<'js>> {
    let (data, label) = (bytes(&data), bytes(&label));
    let encrypted = with_hash!(hash, Hash => public_key(&parts).and_then(|key| {
        let padded = pad::<Hash>(&data, &label, key.size())?;
        let number = hazmat::rsa_encrypt(&key, &BigUint::from_bytes_be(&padded)).ok()?;
        Some(of_length(&number, key.size()))
    }));
    answer(&ctx, encrypted)
}

/// `host.rsaDecrypt(hash, parts, data, label) -> ArrayBuffer`
fn decrypt<'js>(
    ctx: Ctx<'js>,
    hash: Value<'js>,
    parts: Array<'js>,
    data: Value<'js>,
    label: Value<'js>,
) -> Result<Value<'js>> {
    let (data, label) = (bytes(&data), bytes(&label));
    let decrypted = with_hash!(hash, Hash => private_key(&parts).and_then(|key| {
        let number = BigUint::from_bytes_be(&data);
        if data.len() != key.size() || &number >= key.n() {
            return None;
        }
        let padded = hazmat::rsa_decrypt_and_check(&key, Some(&mut Random), &number).ok()?;
        unpad::<Hash>(of_length(&padded, key.size()), &label)
    }));
    answer(&ctx, decrypted)
}

/// The number as so many bytes, with zeros before it.
fn of_length(number: &BigUint, length: usize) -> Vec<u8> {
    let bytes = number.to_bytes_be();
    let mut padded = vec![0; length.saturating_sub(bytes.len())];
    padded.extend_from_slice(&bytes);
    padded
}

/// Changes `bytes` by the mask that MGF1 (RFC 8017, B.2.1) makes of a seed.
fn apply_mask<H: Digest>(bytes: &mut [u8], seed: &[u8]) {
    for (counter, chunk) in bytes.chunks_mut(<H as Digest>::output_size()).enumerate() {
        let mask = H::new()
            .chain_update(seed)
            .chain_update((counter as u32).to_be_bytes())
            .finalize();
        for (byte, mask) in chunk.iter_mut().zip(mask) {
            *byte ^= mask;
        }
    }
}

/// EME-OAEP (RFC 8017, 7.1.1). The crate's own takes no labels but text.
fn pad<H: Digest>(data: &[u8], label: &[u8], size: usize) -> Option<Vec<u8>> {
    let length = <H as Digest>::output_size();
    let room = size.checked_sub(2 * length + 2)?;
    let zeros = room.checked_sub(data.len())?;
    let mut seed = vec![0; length];
    host::random(&mut seed);
    let mut block = H::digest(label).to_vec();
    block.resize(length + zeros, 0);
    block.push(1);
    block.extend_from_slice(data);
    apply_mask::<H>(&mut block, &seed);
    apply_mask::<H>(&mut seed, &block);
    Some([&[0], &seed[..], &block].concat())
}

/// EME-OAEP decoding (RFC 8017, 7.1.2). Whatever is wrong, it looks at every byte before it says so, so that the time it
/// takes does not tell what.
fn unpad<H: Digest>(mut padded: Vec<u8>, label: &[u8]) -> Option<Vec<u8>> {
    let length = <H as Digest>::output_size();
    if padded.len() < 2 * length + 2 {
        return None;
    }
    let (first, rest) = padded.split_at_mut(1);
    let (seed, block) = rest.split_at_mut(length);
    apply_mask::<H>(seed, block);
    apply_mask::<H>(block, seed);
    let mut is_right = first.ct_eq(&[0]) & block[..length].ct_eq(&H::digest(label));
    let mut is_padding = Choice::from(1);
    let mut start = 0_u32;
    for (at, byte) in block.iter().enumerate().skip(length) {
        let is_one = byte.ct_eq(&1);
        start.conditional_assign(&(at as u32 + 1), is_padding & is_one);
        is_right &= !is_padding | byte.ct_eq(&0) | is_one;
        is_padding &= !is_one;
    }
    is_right &= !is_padding;
    bool::from(is_right).then(|| block[start as usize..].to_vec())
}
