//! A sheet as text, as a page and as a picture.

use qrcode::render::{svg, unicode};
use qrcode::{EcLevel, QrCode};
use zeroize::Zeroizing;

use super::Sheet;

/// Text for a terminal or a printer. `dark`: on a dark background, where pictures are drawn in light.
pub fn text(sheet: &Sheet, dark: bool) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(64 * 1024));
    head(sheet, &mut text);
    text.push_str(&sheet.lines);
    if let Some(code) = picture(sheet) {
        let (ink, paper) = match dark {
            true => (unicode::Dense1x2::Light, unicode::Dense1x2::Dark),
            false => (unicode::Dense1x2::Dark, unicode::Dense1x2::Light),
        };
        let drawn = code.render().dark_color(ink).light_color(paper).build();
        text.push('\n');
        text.push_str(&Zeroizing::new(drawn));
        text.push('\n');
    }
    text
}

/// A page to print.
pub fn html(sheet: &Sheet) -> Zeroizing<String> {
    let mut page = Zeroizing::new(String::with_capacity(1024 * 1024));
    page.push_str(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Recovery sheet</title>\n\
         <style>body { margin: 2em; } pre { font-size: 11pt; white-space: pre-wrap; } svg { width: 9cm; height: 9cm; }</style>\n<pre>\n",
    );
    // Nothing in it needs to be escaped: hexadecimal digits, words, base64 and what is written here.
    head(sheet, &mut page);
    page.push_str(&sheet.lines);
    page.push_str("</pre>\n");
    page.push_str(&drawing(sheet));
    page.push_str("\n</html>\n");
    page
}

/// The picture alone.
pub fn svg(sheet: &Sheet) -> Zeroizing<String> {
    let mut file = Zeroizing::new(String::with_capacity(1024 * 1024));
    file.push_str("<?xml version=\"1.0\" standalone=\"yes\"?>\n");
    file.push_str(&drawing(sheet));
    file.push('\n');
    file
}

fn head(sheet: &Sheet, text: &mut String) {
    let names = &sheet.names;
    text.push_str(&format!(
        "RECOVERY SHEET of a device key\n\ndevice {}\nfingerprint {}\nrepository {}\n\n",
        names.device, names.fingerprint, names.root
    ));
    text.push_str(match sheet.protected {
        true => {
            "Whoever has this sheet and its passphrase can open the repository. To get the key back, put the lines below,\n\
             typed or read with a camera, into a file and run: git-e2ee key import FILE --output KEY\n\n"
        }
        false => {
            "Whoever has this sheet can open the repository: keep it as you keep what cannot be replaced. To get the key back,\n\
             run: git-e2ee key import --words --output KEY\n\
             and type the rows below, or put them, or what a camera reads from the picture, into a file and name that.\n\
             The last word of each row checks the six before it.\n\n"
        }
    });
}

fn drawing(sheet: &Sheet) -> Zeroizing<String> {
    let Some(code) = picture(sheet) else {
        return Zeroizing::default();
    };
    let drawn = code.render::<svg::Color<'_>>().min_dimensions(400, 400).build();
    let start = drawn.find("<svg").unwrap_or_default();
    let picture = Zeroizing::new(drawn[start..].to_owned());
    drop(Zeroizing::new(drawn));
    picture
}

/// A protected file is long: it gets fewer spare bits, and none of the picture if it is longer than any code.
fn picture(sheet: &Sheet) -> Option<QrCode> {
    let level = match sheet.protected {
        true => EcLevel::L,
        false => EcLevel::M,
    };
    QrCode::with_error_correction_level(sheet.code.as_bytes(), level).ok()
}
