//! Elliptic curves: ECDSA and ECDH on P-256, P-384 and P-521; Ed25519 and X25519.
//!
//! A private key is a number, a public one an uncompressed point (`04 x y`), both as bytes; those of the curves 25519 have
//! 32 bytes as RFC 7748 and RFC 8032 say.

use super::{Random, answer, answer_list, bytes, with_hash};
use crate::{
    engine::js::{Ctx, Object, Result, Value, function::Func},
    raw,
};
use ecdsa::{
    Signature,
    elliptic_curve::{
        self, AffinePoint, NonZeroScalar, ProjectivePoint, PublicKey, SecretKey,
        generic_array::typenum::Unsigned, sec1::ToEncodedPoint,
    },
    hazmat,
};
use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use p256::{
    NistP256,
    pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey},
};
use p384::NistP384;
use p521::NistP521;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};
use x25519_dalek::{PublicKey as X25519Public, StaticSecret};

pub(super) fn install(object: &Object<'_>) -> Result<()> {
    object.set("curveGenerate", Func::from(generate))?;
    object.set("curvePublic", Func::from(public))?;
    object.set("curvePoint", Func::from(point))?;
    object.set("curveRead", Func::from(read))?;
    object.set("curveWrite", Func::from(write))?;
    object.set("curveSign", Func::from(sign))?;
    object.set("curveVerify", Func::from(verify))?;
    object.set("curveAgree", Func::from(agree))
}

/// Runs `$run` with `$curve` as the curve of that name.
macro_rules! with_curve {
    ($name:expr, $curve:ident => $run:expr) => {
        match $name {
            "P-256" => {
                type $curve = NistP256;
                $run
            }
            "P-384" => {
                type $curve = NistP384;
                $run
            }
            "P-521" => {
                type $curve = NistP521;
                $run
            }
            _ => None,
        }
    };
}

fn fixed(bytes: &[u8]) -> Option<[u8; 32]> {
    bytes.try_into().ok()
}

/// The point that belongs to a private key, or `None` where it is none.
fn public_of(curve: &str, private: &[u8]) -> Option<Vec<u8>> {
    match curve {
        "Ed25519" => Some(
            SigningKey::from_bytes(&fixed(private)?)
                .verifying_key()
                .to_bytes()
                .to_vec(),
        ),
        "X25519" => Some(
            X25519Public::from(&StaticSecret::from(fixed(private)?))
                .to_bytes()
                .to_vec(),
        ),
        _ => with_curve!(curve, Curve => {
            let key = SecretKey::<Curve>::from_slice(private).ok()?;
            Some(key.public_key().to_encoded_point(false).as_bytes().to_vec())
        }),
    }
}

/// A point, uncompressed, or `None` where it is not on the curve.
fn point_of(curve: &str, point: &[u8]) -> Option<Vec<u8>> {
    match curve {
        "Ed25519" | "X25519" => (point.len() == 32).then(|| point.to_vec()),
        _ => with_curve!(curve, Curve => {
            let key = PublicKey::<Curve>::from_sec1_bytes(point).ok()?;
            Some(key.to_encoded_point(false).as_bytes().to_vec())
        }),
    }
}

/// `host.curveGenerate(curve) -> [private, public]`
fn generate<'js>(ctx: Ctx<'js>, curve: Value<'js>) -> Result<Value<'js>> {
    let curve = raw::text_lossy(&curve);
    let private = match curve.as_str() {
        "Ed25519" | "X25519" => {
            let mut private = vec![0; 32];
            crate::host::random(&mut private);
            Some(private)
        }
        curve => {
            with_curve!(curve, Curve => Some(SecretKey::<Curve>::random(&mut Random).to_bytes().to_vec()))
        }
    };
    let pair = private.and_then(|private| {
        let public = public_of(&curve, &private)?;
        Some(vec![private, public])
    });
    answer_list(&ctx, pair)
}

/// `host.curvePublic(curve, private) -> public`, or undefined where that is no private key.
fn public<'js>(ctx: Ctx<'js>, curve: Value<'js>, private: Value<'js>) -> Result<Value<'js>> {
    answer(&ctx, public_of(&raw::text_lossy(&curve), &bytes(&private)))
}

/// `host.curvePoint(curve, point) -> public`, or undefined where that is no point of the curve.
fn point<'js>(ctx: Ctx<'js>, curve: Value<'js>, point: Value<'js>) -> Result<Value<'js>> {
    answer(&ctx, point_of(&raw::text_lossy(&curve), &bytes(&point)))
}

/// The object identifier of a curve 25519, which is all that its keys differ in (RFC 8410).
fn identifier_25519(curve: &str) -> Option<u8> {
    match curve {
        "X25519" => Some(110),
        "Ed25519" => Some(112),
        _ => None,
    }
}

fn head_25519(identifier: u8, is_private: bool) -> Vec<u8> {
    let algorithm = [0x30, 5, 6, 3, 0x2b, 0x65, identifier];
    match is_private {
        true => [&[0x30, 46, 2, 1, 0], &algorithm[..], &[4, 34, 4, 32]].concat(),
        false => [&[0x30, 42], &algorithm[..], &[3, 33, 0]].concat(),
    }
}

/// `host.curveRead(curve, isPrivate, der) -> [private, public]` or `[public]`: from PKCS #8 or SPKI; undefined where it is
/// no key of that curve.
fn read<'js>(
    ctx: Ctx<'js>,
    curve: Value<'js>,
    is_private: bool,
    der: Value<'js>,
) -> Result<Value<'js>> {
    let (curve, der) = (raw::text_lossy(&curve), bytes(&der));
    let key = if let Some(identifier) = identifier_25519(&curve) {
        der.strip_prefix(&head_25519(identifier, is_private)[..])
            .filter(|key| key.len() == 32)
            .map(<[u8]>::to_vec)
    } else if is_private {
        with_curve!(curve.as_str(), Curve => {
            SecretKey::<Curve>::from_pkcs8_der(&der).ok().map(|key| key.to_bytes().to_vec())
        })
    } else {
        with_curve!(curve.as_str(), Curve => PublicKey::<Curve>::from_public_key_der(&der)
            .ok()
            .map(|key| key.to_encoded_point(false).as_bytes().to_vec()))
    };
    let parts = key.and_then(|key| match is_private {
        true => {
            let public = public_of(&curve, &key)?;
            Some(vec![key, public])
        }
        false => Some(vec![key]),
    });
    answer_list(&ctx, parts)
}

fn der_of(curve: &str, is_private: bool, key: &[u8]) -> Option<Vec<u8>> {
    if let Some(identifier) = identifier_25519(curve) {
        return Some([&head_25519(identifier, is_private)[..], key].concat());
    }
    with_curve!(curve, Curve => match is_private {
        true => {
            let der = SecretKey::<Curve>::from_slice(key).ok()?.to_pkcs8_der().ok()?;
            Some(der.as_bytes().to_vec())
        }
        false => {
            let der = PublicKey::<Curve>::from_sec1_bytes(key).ok()?.to_public_key_der().ok()?;
            Some(der.as_bytes().to_vec())
        }
    })
}

/// `host.curveWrite(curve, isPrivate, key) -> der`: PKCS #8 or SPKI.
fn write<'js>(
    ctx: Ctx<'js>,
    curve: Value<'js>,
    is_private: bool,
    key: Value<'js>,
) -> Result<Value<'js>> {
    let der = der_of(&raw::text_lossy(&curve), is_private, &bytes(&key));
    answer(&ctx, der)
}

/// A hash as a number of the curve's field. (A short one is lengthened to what the crate takes; that is the same number.)
fn field_of<C: elliptic_curve::PrimeCurve>(hash: &[u8]) -> Option<elliptic_curve::FieldBytes<C>> {
    let least = C::FieldBytesSize::USIZE;
    let zeros = vec![0; least.saturating_sub(hash.len())];
    hazmat::bits2field::<C>(&[&zeros, hash].concat()).ok()
}

/// `host.curveSign(curve, hash, private, data) -> signature`. The hash of Ed25519 is a part of it.
fn sign<'js>(
    ctx: Ctx<'js>,
    curve: Value<'js>,
    hash: Value<'js>,
    private: Value<'js>,
    data: Value<'js>,
) -> Result<Value<'js>> {
    let (curve, private, data) = (raw::text_lossy(&curve), bytes(&private), bytes(&data));
    let signed = (|| {
        if curve == "Ed25519" {
            let key = SigningKey::from_bytes(&fixed(&private)?);
            return Some(key.sign(&data).to_bytes().to_vec());
        }
        let digest = with_hash!(hash, Hash => Some(Hash::digest(&data).to_vec()))?;
        with_curve!(curve.as_str(), Curve => {
            let key = SecretKey::<Curve>::from_slice(&private).ok()?;
            let once = NonZeroScalar::<Curve>::random(&mut Random);
            let field = field_of::<Curve>(&digest)?;
            let signed = hazmat::sign_prehashed::<Curve, _>(&key.to_nonzero_scalar(), *once, &field);
            signed.ok().map(|(signature, _)| signature.to_vec())
        })
    })();
    answer(&ctx, signed)
}

/// `host.curveVerify(curve, hash, public, signature, data) -> boolean`
fn verify<'js>(
    curve: Value<'js>,
    hash: Value<'js>,
    public: Value<'js>,
    signature: Value<'js>,
    data: Value<'js>,
) -> bool {
    let (curve, public) = (raw::text_lossy(&curve), bytes(&public));
    let (signature, data) = (bytes(&signature), bytes(&data));
    let is_right = (|| {
        if curve == "Ed25519" {
            let key = VerifyingKey::from_bytes(&fixed(&public)?).ok()?;
            let signature = ed25519_dalek::Signature::from_slice(&signature).ok()?;
            return key.verify_strict(&data, &signature).ok();
        }
        let digest = with_hash!(hash, Hash => Some(Hash::digest(&data).to_vec()))?;
        with_curve!(curve.as_str(), Curve => {
            let key = PublicKey::<Curve>::from_sec1_bytes(&public).ok()?;
            let point = ProjectivePoint::<Curve>::from(*key.as_affine());
            let signature = Signature::<Curve>::from_slice(&signature).ok()?;
            hazmat::verify_prehashed::<Curve>(&point, &field_of::<Curve>(&digest)?, &signature).ok()
        })
    })();
    is_right.is_some()
}

/// `host.curveAgree(curve, private, public) -> secret`, or undefined where they agree on nothing.
fn agree<'js>(
    ctx: Ctx<'js>,
    curve: Value<'js>,
    private: Value<'js>,
    public: Value<'js>,
) -> Result<Value<'js>> {
    let (curve, private, public) = (raw::text_lossy(&curve), bytes(&private), bytes(&public));
    let secret = (|| {
        if curve == "X25519" {
            let ours = StaticSecret::from(fixed(&private)?);
            let secret = ours.diffie_hellman(&X25519Public::from(fixed(&public)?));
            // What all private keys agree on with that point is no secret.
            return secret
                .was_contributory()
                .then(|| secret.as_bytes().to_vec());
        }
        with_curve!(curve.as_str(), Curve => {
            let ours = SecretKey::<Curve>::from_slice(&private).ok()?;
            let theirs = PublicKey::<Curve>::from_sec1_bytes(&public).ok()?;
            let point: &AffinePoint<Curve> = theirs.as_affine();
            let secret = elliptic_curve::ecdh::diffie_hellman(ours.to_nonzero_scalar(), point);
            Some(secret.raw_secret_bytes().to_vec())
        })
    })();
    answer(&ctx, secret)
}
