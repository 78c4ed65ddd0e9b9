use super::*;
use crate::protocol::crypto;
use crate::protocol::keys::DeviceKey;

fn device(founder: &DeviceKey) -> DeviceKey {
    DeviceKey::generate(Some(*founder.root())).expect("random bytes")
}

fn add(key: &DeviceKey, role: Role) -> Change {
    Change::Add {
        device: key.public().clone(),
        role,
    }
}

#[test]
fn membership_changes() {
    let founder = DeviceKey::generate(None).expect("random bytes");
    let (second, third) = (device(&founder), device(&founder));
    let genesis = Policy::genesis(&founder).expect("policy");
    let two = genesis
        .transition(&founder, &[add(&second, Role::Admin)])
        .expect("policy");
    assert!(matches!(
        two.transition(&founder, &[add(&second, Role::Read)]),
        Err(Error::DeviceExists(_))
    ));
    let unknown = two.transition(&founder, &[Change::Revoke(*third.id())]);
    assert!(matches!(unknown, Err(Error::DeviceNotActive(_))));

    // Replaced in one step, by the other administrator.
    let replace = [add(&third, Role::Write), Change::Revoke(*founder.id())];
    let replaced = two.transition(&second, &replace).expect("policy");
    assert_eq!(replaced.generation(), 2);
    assert_eq!(
        replaced.device(founder.id()).and_then(|device| device.revoked_at),
        Some(2)
    );
    assert!(replaced.devices().is_sorted_by_key(|device| device.device_id));
    assert_eq!(replaced.active_readers().count(), 2);
    assert!(matches!(
        replaced.transition(&founder, &[]),
        Err(Error::NotAdministrator(_))
    ));
    let twice = replaced.transition(&second, &[Change::Revoke(*founder.id())]);
    assert!(matches!(twice, Err(Error::DeviceNotActive(_))));
    let back = replaced.transition(&second, &[add(&founder, Role::Read)]);
    assert!(
        matches!(back, Err(Error::DeviceExists(_))),
        "a revoked device does not come back"
    );
    let last = replaced.transition(&second, &[Change::Revoke(*second.id())]);
    assert_eq!(
        last.expect_err("last").to_string(),
        "cannot revoke the last active administrator"
    );
    let last = genesis.transition(&founder, &[Change::Revoke(*founder.id())]);
    assert_eq!(
        last.expect_err("last").to_string(),
        "cannot revoke the last active reader"
    );
    let foreign = DeviceKey::generate(None).expect("random bytes");
    assert!(matches!(
        genesis.transition(&founder, &[add(&foreign, Role::Read)]),
        Err(Error::ForeignRoot { .. })
    ));
}

/// Signs a changed body, as a dishonest administrator could.
fn forged(
    signer: &DeviceKey,
    policy: &Policy,
    change: &dyn Fn(&mut serde_json::Value),
) -> Result<Policy, Error> {
    let object: serde_json::Value = serde_json::from_slice(policy.object()).expect("JSON");
    let body = object["body"]
        .as_str()
        .and_then(|text| data_encoding::BASE64.decode(text.as_bytes()).ok());
    let mut body: serde_json::Value = serde_json::from_slice(&body.expect("base64")).expect("JSON");
    change(&mut body);
    let body = body.to_string();
    let digest = crypto::digest_of(&[body.as_bytes()]);
    let signature = signer.sign(crate::protocol::encoding::domain::POLICY_SIGNATURE, &digest);
    let object = serde_json::json!({
        "body": data_encoding::BASE64.encode(body.as_bytes()),
        "signatures": [{
            "device_id": signer.id(),
            "signature": data_encoding::BASE64.encode(&signature),
        }],
    });
    Policy::parse(object.to_string().as_bytes())
}

#[test]
fn forgeries() {
    let founder = DeviceKey::generate(None).expect("random bytes");
    let second = device(&founder);
    let genesis = Policy::genesis(&founder).expect("policy");
    let two = genesis
        .transition(&founder, &[add(&second, Role::Write)])
        .expect("policy");
    let index = |policy: &Policy, key: &DeviceKey| {
        policy
            .devices()
            .iter()
            .position(|device| device.device_id == *key.id())
            .expect("listed")
    };
    let parse =
        |change: &dyn Fn(&mut serde_json::Value)| forged(&founder, &two, change).expect_err("refused");
    let follow = |change: &dyn Fn(&mut serde_json::Value)| {
        let policy = forged(&founder, &two, change).expect("holds in itself");
        policy.verify_successor(&genesis).expect_err("refused")
    };
    let (first_at, second_at) = (index(&two, &founder), index(&two, &second));
    assert!(
        forged(&founder, &two, &|_| ())
            .expect("unchanged")
            .verify_successor(&genesis)
            .is_ok()
    );

    assert!(matches!(
        parse(&|body| body["format_version"] = 6.into()),
        Error::UnsupportedFormat(6)
    ));
    assert!(matches!(
        parse(&|body| body["admin_threshold"] = 2.into()),
        Error::Threshold(2)
    ));
    assert!(matches!(
        parse(&|body| body["more"] = 2.into()),
        Error::Malformed { part: "body", .. }
    ));
    assert!(matches!(
        parse(&|body| body["devices"][second_at]["device_id"] = founder.id().to_string().into()),
        Error::DeviceIdMismatch { .. }
    ));
    assert!(matches!(
        parse(&|body| body["devices"][second_at] = body["devices"][first_at].clone()),
        Error::DuplicateDevice(_)
    ));
    assert!(matches!(
        parse(&|body| body["devices"][second_at]["roles"]["reader"] = false.into()),
        Error::RolesWithoutReader(_)
    ));
    assert!(matches!(
        parse(&|body| body["devices"][first_at]["roles"]["administrator"] = false.into()),
        Error::NoAdministrator
    ));
    assert!(matches!(
        parse(&|body| body["devices"] = serde_json::json!([])),
        Error::NoReader
    ));

    assert!(matches!(
        follow(&|body| body["generation"] = 2.into()),
        Error::Generation { seen: 2, expected: 1 }
    ));
    assert!(matches!(
        follow(&|body| body["previous"] = serde_json::Value::Null),
        Error::Previous { .. }
    ));
    assert!(matches!(
        follow(&|body| body["devices"][second_at]["revoked_at"] = 0.into()),
        Error::RevocationGeneration {
            seen: 0,
            expected: 1,
            ..
        }
    ));
    let born_revoked = |body: &mut serde_json::Value| body["devices"][second_at]["revoked_at"] = 1.into();
    assert!(
        forged(&founder, &two, &born_revoked)
            .expect("valid")
            .verify_successor(&genesis)
            .is_ok()
    );

    // Signed by somebody without the right.
    let own = forged(&second, &two, &|_| ()).expect("holds in itself");
    assert!(matches!(
        own.verify_successor(&genesis),
        Err(Error::SignerNotAdministrator(_))
    ));
    let mut object: serde_json::Value = serde_json::from_slice(two.object()).expect("JSON");
    object["signatures"][0]["signature"] = data_encoding::BASE64.encode(&[7; 64]).into();
    let unsigned = Policy::parse(object.to_string().as_bytes()).expect("holds in itself");
    assert!(matches!(
        unsigned.verify_successor(&genesis),
        Err(Error::Signature(_))
    ));
    object["signatures"] = serde_json::json!([]);
    assert!(matches!(
        Policy::parse(object.to_string().as_bytes()),
        Err(Error::SignatureCount(0))
    ));

    // Taking back a revocation, or a device.
    let revoked = two
        .transition(&founder, &[Change::Revoke(*second.id())])
        .expect("policy");
    let later = revoked.transition(&founder, &[]).expect("policy");
    for value in [serde_json::Value::Null, 1.into(), 3.into()] {
        let change = |body: &mut serde_json::Value| body["devices"][second_at]["revoked_at"] = value.clone();
        let policy = forged(&founder, &later, &change).expect("holds in itself");
        assert!(
            matches!(
                policy.verify_successor(&revoked),
                Err(Error::RevocationAltered(_))
            ),
            "{value}"
        );
    }
    let drop_second = |body: &mut serde_json::Value| {
        body["devices"].as_array_mut().expect("a list").remove(second_at);
    };
    let policy = forged(&founder, &later, &drop_second).expect("holds in itself");
    assert!(matches!(
        policy.verify_successor(&revoked),
        Err(Error::DeviceAltered(_))
    ));

    // Rights of a device may change.
    let promote =
        |body: &mut serde_json::Value| body["devices"][second_at]["roles"]["administrator"] = true.into();
    let next = two.transition(&founder, &[]).expect("policy");
    assert!(
        forged(&founder, &next, &promote)
            .expect("valid")
            .verify_successor(&two)
            .is_ok()
    );

    // As first policies.
    let first = |change: &dyn Fn(&mut serde_json::Value)| {
        forged(&founder, &genesis, change)
            .expect("holds in itself")
            .verify_genesis()
    };
    assert!(first(&|_| ()).is_ok());
    assert!(matches!(
        first(&|body| body["generation"] = 1.into()),
        Err(Error::Generation { .. })
    ));
    let previous = |body: &mut serde_json::Value| body["previous"] = genesis.id().to_string().into();
    assert!(matches!(first(&previous), Err(Error::Genesis(_))));
    let no_writer = |body: &mut serde_json::Value| body["devices"][0]["roles"]["writer"] = false.into();
    assert!(matches!(first(&no_writer), Err(Error::Genesis(_))));
    assert!(matches!(two.verify_genesis(), Err(Error::Generation { .. })));
    let usurper = device(&founder);
    let taken = Policy::genesis(&usurper);
    assert!(
        matches!(taken, Err(Error::Genesis(_))),
        "a root belongs to the keys that it names"
    );
}
