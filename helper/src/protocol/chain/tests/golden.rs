use super::*;

#[test]
fn golden_chains_read_as_expected() {
    for golden in Golden::both() {
        let expected = &golden.expected;
        let chain = Chain::read(
            |id| golden.manifest(id),
            &expected.head_manifest_id,
            &golden.owner,
        );
        let chain = chain.expect("golden chain");
        assert_eq!(chain.root().to_string(), expected.repository_root);
        assert_eq!(*chain.head().id(), expected.head_manifest_id);
        assert_eq!(chain.head().number(), expected.generation);
        assert_eq!(chain.policy().id().to_string(), expected.policy_id);
        assert_eq!(chain.policy().generation(), expected.policy_generation);
        assert_eq!(chain.pack_count(), expected.pack_count);
        assert_eq!(chain.refs(), &expected.refs);
        let devices = chain.policy().devices();
        assert_eq!(devices.len(), expected.devices.len());
        for (device, expected) in devices.iter().zip(&expected.devices) {
            assert_eq!(device.device_id.to_string(), expected.device_id);
            assert_eq!(
                device.roles.highest().map(Role::as_str),
                Some(expected.role.as_str())
            );
            assert_eq!(device.revoked_at, expected.revoked_at);
        }
        assert_eq!(chain.generations().len(), expected.generations.len());
        for (number, (generation, expected)) in
            (0..).zip(chain.generations().iter().zip(&expected.generations))
        {
            assert_eq!(
                (generation.number(), *generation.id()),
                (number, expected.manifest_id)
            );
            assert_eq!(
                chain.refs_at(number).as_ref(),
                Some(&expected.refs),
                "generation {number}"
            );
        }
        assert_eq!(chain.refs_at(10), None);
    }
}

#[test]
fn the_second_device_reads_while_it_is_active() {
    for golden in Golden::both() {
        let generations = &golden.expected.generations;
        let read = |number: usize| {
            Chain::read(
                |id| golden.manifest(id),
                &generations[number].manifest_id,
                &golden.second,
            )
        };
        for number in [6, 7, 8] {
            let chain = read(number).expect("an active reader");
            assert_eq!(chain.refs(), &generations[number].refs);
            assert_eq!(
                chain.generations().len(),
                number + 1,
                "all history is open to a new reader"
            );
        }
        for number in [0, 5, 9] {
            let error = read(number).expect_err("not an active reader");
            let ReadError::Chain(error) = error else {
                panic!("{error}")
            };
            assert_eq!(error.kind(), Kind::WrongKey);
            assert!(error.to_string().ends_with(
                "device is not an active reader of the current generation (revoked, never added, or envelope malformed)"
            ));
        }
    }
}
