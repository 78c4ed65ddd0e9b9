//! Every parser of what servers say, on bytes that no server would say.

#![allow(clippy::unwrap_used)] // in tests, failing is the point

use std::io::{BufReader, Read};
use std::sync::Arc;

use bstr::ByteSlice as _;
use gix_hash::ObjectId;
use proptest::prelude::*;

use super::advertisement::read_any;
use super::channel::Service;
use super::pkt_line::{self, Reader};
use super::receive_pack::read_report;
use super::side_band::Demultiplexed;
use super::{Address, Lines, Messages, Silently, http};

const ID: &str = "0123456789012345678901234567890123456789";

fn frames(lines: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines {
        match *line {
            "flush" => out.extend_from_slice(pkt_line::FLUSH),
            "delimiter" => out.extend_from_slice(pkt_line::DELIMITER),
            line => pkt_line::data(&mut out, line.as_bytes()).unwrap(),
        }
    }
    out
}

/// Conversations that make sense, to be made senseless.
fn conversations() -> Vec<Vec<u8>> {
    let head = format!("{ID} HEAD\0side-band-64k symref=HEAD:refs/heads/a object-format=sha1\n");
    let main = format!("{ID} refs/heads/a\n");
    let tag = format!("{ID} refs/tags/v^{{}}\n");
    let new = format!("option new-oid {ID}\n");
    let http = "HTTP/1.1 200 OK\r\nContent-Type: a/b; c=d\r\nTransfer-Encoding: chunked\r\n\r\n4;x\r\nabcd\r\n0\r\nT: x\r\n\r\n";
    vec![
        frames(&[
            "# service=git-upload-pack\n",
            "flush",
            &head,
            &main,
            &tag,
            "flush",
        ]),
        frames(&["version 2\n", "agent=x\n", "fetch=filter shallow\n", "flush"]),
        frames(&["version 1\n", &head, &main, "flush"]),
        frames(&[
            "unpack ok\n",
            "ok refs/heads/a\n",
            &new,
            "ng refs/heads/b no\n",
            "flush",
        ]),
        frames(&["\u{1}PACK", "\u{2}Counting\r", "\u{3}fatal\n", "flush"]),
        http.as_bytes().to_vec(),
        http.replace("Transfer-Encoding: chunked", "Content-Length: 4")
            .into_bytes(),
    ]
}

fn parse_all(data: &[u8]) {
    for service in [Service::UploadPack, Service::ReceivePack] {
        let _ = read_any(&mut Reader::new(data), service);
    }
    let id = ObjectId::from_hex(ID.as_bytes()).unwrap();
    let _ = read_report(&mut Reader::new(data), id);
    let messages: Arc<dyn Messages> = Arc::new(Silently);
    let mut reader = Reader::new(data);
    let mut out = Vec::new();
    let _ = Demultiplexed::new(&mut reader, &messages, "there").read_to_end(&mut out);
    assert!(out.len() <= data.len());
    http::parse_any(&mut BufReader::new(data));
    let mut shown = 0;
    let mut lines = Lines::new();
    lines.push(data, &mut |_| shown += 1);
    lines.finish(&mut |_| shown += 1);
    assert!(shown <= data.len() + 1);
    let _ = Address::parse(data.as_bstr());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(data in proptest::collection::vec(any::<u8>(), 0..600)) {
        parse_all(&data);
    }

    #[test]
    fn nearly_good_bytes(
        which in 0_usize..7,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut data = conversations().swap_remove(which);
        for (place, byte) in changes {
            let place = place.index(data.len());
            data[place] = byte;
        }
        parse_all(&data);
        parse_all(&data[..cut.index(data.len())]);
    }
}
