//! Cryptography on whole buffers, by the RustCrypto crates. The prelude has checked the parameters' sizes; what does not
//! fit all the same is answered with `undefined`. Keys in pairs are in `elliptic` and `rsa`.

mod elliptic;
mod rsa;

use super::undefined;
use crate::{
    engine::js::{Ctx, Object, Result, Value, function::Func},
    host, raw,
};
use aes::{
    Aes128, Aes192, Aes256, Block,
    cipher::{
        BlockDecryptMut, BlockEncrypt, BlockEncryptMut, KeyInit, KeyIvInit, StreamCipher,
        block_padding::Pkcs7, consts::U16, generic_array::GenericArray,
    },
};
use ghash::{GHash, universal_hash::UniversalHash};
use hmac::{Hmac, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};
use subtle::ConstantTimeEq;

pub(super) fn install(object: &Object<'_>) -> Result<()> {
    object.set("digest", Func::from(digest))?;
    object.set("hmac", Func::from(hmac))?;
    object.set("pbkdf2", Func::from(pbkdf2))?;
    object.set("hkdf", Func::from(hkdf))?;
    object.set("aes", Func::from(aes))?;
    object.set("aesGcm", Func::from(aes_gcm))?;
    object.set("isSame", Func::from(is_same))?;
    elliptic::install(object)?;
    rsa::install(object)
}

/// The host's randomness, as the crates take it.
struct Random;

impl rand_core::RngCore for Random {
    fn next_u32(&mut self) -> u32 {
        rand_core::impls::next_u32_via_fill(self)
    }

    fn next_u64(&mut self) -> u64 {
        rand_core::impls::next_u64_via_fill(self)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        host::random(bytes);
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> std::result::Result<(), rand_core::Error> {
        host::random(bytes);
        Ok(())
    }
}

impl rand_core::CryptoRng for Random {}

/// A list of `ArrayBuffer`s that inherits nothing, or undefined.
fn answer_list<'js>(ctx: &Ctx<'js>, items: Option<Vec<Vec<u8>>>) -> Result<Value<'js>> {
    let Some(items) = items else {
        return Ok(undefined(ctx));
    };
    let buffers = items.iter().map(|bytes| raw::array_buffer(ctx, bytes));
    let list = raw::array(ctx, &buffers.collect::<Result<Vec<_>>>()?)?;
    if let Some(list) = list.as_object() {
        list.set_prototype(None)?;
    }
    Ok(list)
}

/// The bytes of an `ArrayBuffer`.
fn bytes(buffer: &Value<'_>) -> Vec<u8> {
    raw::with_buffer(buffer, |bytes| bytes.to_vec()).unwrap_or_default()
}

/// An `ArrayBuffer`, or undefined.
fn answer<'js>(ctx: &Ctx<'js>, bytes: Option<Vec<u8>>) -> Result<Value<'js>> {
    match bytes {
        Some(bytes) => raw::array_buffer(ctx, &bytes),
        None => Ok(undefined(ctx)),
    }
}

/// Runs `$run` with `$hash` as the type of that name.
macro_rules! with_hash {
    ($name:expr, $hash:ident => $run:expr) => {
        match raw::text_lossy(&$name).as_str() {
            "SHA-1" => {
                type $hash = Sha1;
                $run
            }
            "SHA-256" => {
                type $hash = Sha256;
                $run
            }
            "SHA-384" => {
                type $hash = Sha384;
                $run
            }
            "SHA-512" => {
                type $hash = Sha512;
                $run
            }
            _ => None,
        }
    };
}
use with_hash;

/// `host.digest(hash, data) -> ArrayBuffer`
fn digest<'js>(ctx: Ctx<'js>, hash: Value<'js>, data: Value<'js>) -> Result<Value<'js>> {
    let data = bytes(&data);
    let digest = match raw::text_lossy(&hash).as_str() {
        // Workers have it, for what others have signed with it.
        "MD5" => Some(Md5::digest(&data).to_vec()),
        _ => with_hash!(hash, Hash => Some(Hash::digest(&data).to_vec())),
    };
    answer(&ctx, digest)
}

/// `host.hmac(hash, key, data) -> ArrayBuffer`
fn hmac<'js>(
    ctx: Ctx<'js>,
    hash: Value<'js>,
    key: Value<'js>,
    data: Value<'js>,
) -> Result<Value<'js>> {
    let (key, data) = (bytes(&key), bytes(&data));
    let code = with_hash!(hash, Hash => {
        <Hmac<Hash> as Mac>::new_from_slice(&key).ok().map(|mut code| {
            code.update(&data);
            code.finalize().into_bytes().to_vec()
        })
    });
    answer(&ctx, code)
}

/// `host.pbkdf2(hash, password, salt, iterations, length) -> ArrayBuffer`, the length in bytes
fn pbkdf2<'js>(
    ctx: Ctx<'js>,
    hash: Value<'js>,
    password: Value<'js>,
    salt: Value<'js>,
    iterations: f64,
    length: usize,
) -> Result<Value<'js>> {
    let (password, salt) = (bytes(&password), bytes(&salt));
    let mut derived = vec![0; length];
    let done = with_hash!(hash, Hash => {
        pbkdf2::pbkdf2_hmac::<Hash>(&password, &salt, iterations as u32, &mut derived);
        Some(())
    });
    answer(&ctx, done.map(|()| derived))
}

/// `host.hkdf(hash, key, salt, info, length) -> ArrayBuffer`, the length in bytes
fn hkdf<'js>(
    ctx: Ctx<'js>,
    hash: Value<'js>,
    key: Value<'js>,
    salt: Value<'js>,
    info: Value<'js>,
    length: usize,
) -> Result<Value<'js>> {
    let (key, salt, info) = (bytes(&key), bytes(&salt), bytes(&info));
    let mut derived = vec![0; length];
    let done = with_hash!(hash, Hash => {
        hkdf::Hkdf::<Hash>::new(Some(&salt), &key).expand(&info, &mut derived).ok()
    });
    answer(&ctx, done.map(|()| derived))
}

/// Runs `$run` with `$cipher` as AES of the key's length.
macro_rules! with_aes {
    ($key:expr, $cipher:ident => $run:expr) => {
        match $key.len() {
            16 => {
                type $cipher = Aes128;
                $run
            }
            24 => {
                type $cipher = Aes192;
                $run
            }
            32 => {
                type $cipher = Aes256;
                $run
            }
            _ => None,
        }
    };
}

/// `host.aes(mode, key, iv, data) -> ArrayBuffer`. The mode is "cbc encrypt", "cbc decrypt", "ctr", "kw wrap" or
/// "kw unwrap".
fn aes<'js>(
    ctx: Ctx<'js>,
    mode: Value<'js>,
    key: Value<'js>,
    iv: Value<'js>,
    data: Value<'js>,
) -> Result<Value<'js>> {
    let (key, iv, mut data) = (bytes(&key), bytes(&iv), bytes(&data));
    let mode = raw::text_lossy(&mode);
    let coded = with_aes!(key, Cipher => match mode.as_str() {
        "cbc encrypt" => cbc::Encryptor::<Cipher>::new_from_slices(&key, &iv)
            .ok()
            .map(|cipher| cipher.encrypt_padded_vec_mut::<Pkcs7>(&data)),
        "cbc decrypt" => cbc::Decryptor::<Cipher>::new_from_slices(&key, &iv)
            .ok()
            .and_then(|cipher| cipher.decrypt_padded_vec_mut::<Pkcs7>(&data).ok()),
        "ctr" => ctr::Ctr128BE::<Cipher>::new_from_slices(&key, &iv)
            .ok()
            .and_then(|mut cipher| cipher.try_apply_keystream(&mut data).ok())
            .map(|()| data),
        "kw wrap" => aes_kw::Kek::<Cipher>::try_from(&key[..])
            .ok()
            .and_then(|kek| kek.wrap_vec(&data).ok()),
        "kw unwrap" => aes_kw::Kek::<Cipher>::try_from(&key[..])
            .ok()
            .and_then(|kek| kek.unwrap_vec(&data).ok()),
        _ => None,
    });
    answer(&ctx, coded)
}

/// `host.aesGcm(isEncrypting, key, iv, data, additional, tagLength) -> ArrayBuffer`, the length in bytes. Undefined where the
/// tag is not right.
fn aes_gcm<'js>(
    ctx: Ctx<'js>,
    is_encrypting: bool,
    key: Value<'js>,
    iv: Value<'js>,
    data: Value<'js>,
    additional: Value<'js>,
    tag_length: usize,
) -> Result<Value<'js>> {
    let (key, iv, additional) = (bytes(&key), bytes(&iv), bytes(&additional));
    let mut data = bytes(&data);
    let coded = with_aes!(key, Cipher => {
        let gcm = Gcm::new(Cipher::new(GenericArray::from_slice(&key)), &iv);
        if is_encrypting {
            gcm.apply(&mut data);
            let tag = gcm.tag(&data, &additional);
            data.extend_from_slice(tag.get(..tag_length).unwrap_or(&tag));
            Some(data)
        } else {
            data.len().checked_sub(tag_length).and_then(|length| {
                let given = data.split_off(length);
                let tag = gcm.tag(&data, &additional);
                let is_right = tag.get(..tag_length)?.ct_eq(&given);
                bool::from(is_right).then(|| {
                    gcm.apply(&mut data);
                    data
                })
            })
        }
    });
    answer(&ctx, coded)
}

/// AES-GCM (NIST SP 800-38D) with an initial vector and a tag of any length; the crate of that name fixes both at compile
/// time.
struct Gcm<C> {
    cipher: C,
    hash: GHash,
    first: Block,
}

impl<C: BlockEncrypt + BlockEncryptMut + aes::cipher::BlockSizeUser<BlockSize = U16> + Clone>
    Gcm<C>
{
    fn new(cipher: C, iv: &[u8]) -> Self {
        let mut hash_key = Block::default();
        cipher.encrypt_block(&mut hash_key);
        let hash = <GHash as ghash::universal_hash::KeyInit>::new(&hash_key);
        let first = if iv.len() == 12 {
            let mut first = Block::default();
            first[..12].copy_from_slice(iv);
            first[15] = 1;
            first
        } else {
            let mut of_iv = hash.clone();
            of_iv.update_padded(iv);
            of_iv.update(&[lengths(0, iv.len())]);
            of_iv.finalize()
        };
        Self {
            cipher,
            hash,
            first,
        }
    }

    /// Encrypts, or decrypts, which is the same.
    fn apply(&self, data: &mut [u8]) {
        let mut counter = self.first;
        for chunk in data.chunks_mut(16) {
            let (_, number) = counter.split_at_mut(12);
            let next = u32::from_be_bytes([number[0], number[1], number[2], number[3]]);
            number.copy_from_slice(&next.wrapping_add(1).to_be_bytes());
            let mut mask = counter;
            self.cipher.encrypt_block(&mut mask);
            for (byte, mask) in chunk.iter_mut().zip(mask) {
                *byte ^= mask;
            }
        }
    }

    fn tag(&self, encrypted: &[u8], additional: &[u8]) -> [u8; 16] {
        let mut hash = self.hash.clone();
        hash.update_padded(additional);
        hash.update_padded(encrypted);
        hash.update(&[lengths(additional.len(), encrypted.len())]);
        let mut tag: Block = hash.finalize();
        let mut mask = self.first;
        self.cipher.encrypt_block(&mut mask);
        for (byte, mask) in tag.iter_mut().zip(mask) {
            *byte ^= mask;
        }
        tag.into()
    }
}

/// Two lengths in bits, as GHASH takes them.
fn lengths(additional: usize, data: usize) -> Block {
    let mut block = Block::default();
    block[..8].copy_from_slice(&(additional as u64 * 8).to_be_bytes());
    block[8..].copy_from_slice(&(data as u64 * 8).to_be_bytes());
    block
}

/// `host.isSame(one, other)`, in a time that does not tell where they differ; they are of one length
fn is_same<'js>(one: Value<'js>, other: Value<'js>) -> bool {
    bytes(&one).ct_eq(&bytes(&other)).into()
}
