//! A drawing as PDF with an embedded font, so that it looks the same on a machine without fonts.

use super::standalone::TEXT_SIZE;
use crate::Error;
use pdf_writer::types::{CidFontType, FontFlags, LineJoinStyle, SystemInfo, UnicodeCmap};
use pdf_writer::{Content, Finish, Name, Pdf, Rect, Ref, Str};
use roxmltree::{Document, Node};
use std::collections::BTreeMap;
use ttf_parser::{Face, GlyphId};

/// DejaVu Sans, reduced to Latin letters and the symbols of the figures.
const FONT: &[u8] = include_bytes!("DejaVuSans.ttf");
const FONT_NAME: Name<'static> = Name(b"DejaVuSans");
/// The name of the font within the page.
const FONT_HERE: Name<'static> = Name(b"F");
/// The replacement for characters that the font does not have.
const UNKNOWN: char = '?';
/// Distance of a Bezier control point from the end of a quarter circle of radius 1.
const QUARTER: f32 = 0.552_284_8;

/// Glyph numbers follow Adobe's Identity ordering.
const IDENTITY: SystemInfo<'static> =
    SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

/// Returns the PDF of a standalone drawing.
pub(super) fn render(svg: &str) -> Result<Vec<u8>, Error> {
    let broken = |what: String| Error::Internal(format!("a figure as PDF: {what}"));
    let document = Document::parse(svg).map_err(|error| broken(error.to_string()))?;
    let face = Face::parse(FONT, 0).map_err(|error| broken(error.to_string()))?;
    let root = document.root_element();
    let (width, height) = (number(root, "width"), number(root, "height"));
    // The upper edge of the view box: the title is above zero.
    let view = root.attribute("viewBox").unwrap_or_default();
    let above: f32 = view.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0.0);
    let mut page = Page {
        content: Content::new(),
        face: &face,
        height: height + above,
        used: BTreeMap::new(),
    };
    for node in root.children().filter(Node::is_element) {
        page.draw(node);
    }
    let Page { content, used, .. } = page;
    Ok(file(&content.finish(), (width, height), &face, &used))
}

/// Returns a numeric attribute; 0 if it is absent.
fn number(node: Node<'_, '_>, name: &str) -> f32 {
    node.attribute(name).and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

/// Returns the colour `#rrggbb` blended on white with opacity `share`.
fn colour(text: &str, share: f32) -> Option<[f32; 3]> {
    let hex = text.strip_prefix('#')?;
    let part = |at: usize| {
        let value = u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()?;
        Some(1.0 - share * (1.0 - f32::from(value) / 255.0))
    };
    Some([part(0)?, part(2)?, part(4)?])
}

struct Page<'a> {
    content: Content,
    face: &'a Face<'a>,
    /// Height of the page above the drawing's zero.
    height: f32,
    /// Glyphs of the page, and their characters.
    used: BTreeMap<u16, char>,
}

impl Page<'_> {
    fn draw(&mut self, node: Node<'_, '_>) {
        let filled = self.fill(node);
        let stroked = self.stroke(node);
        match node.tag_name().name() {
            "line" => {
                self.content.move_to(number(node, "x1"), self.height - number(node, "y1"));
                self.content.line_to(number(node, "x2"), self.height - number(node, "y2"));
            }
            "polyline" => self.polyline(node.attribute("points").unwrap_or_default()),
            "rect" => {
                let high = number(node, "height");
                let bottom = self.height - number(node, "y") - high;
                self.content.rect(number(node, "x"), bottom, number(node, "width"), high);
            }
            "circle" => self.circle(node),
            "text" => return self.text(node),
            _ => return,
        }
        match (filled, stroked) {
            (true, true) => self.content.fill_nonzero_and_stroke(),
            (true, false) => self.content.fill_nonzero(),
            (false, true) => self.content.stroke(),
            (false, false) => self.content.end_path(),
        };
    }

    /// Sets the fill colour; returns false if there is no fill.
    fn fill(&mut self, node: Node<'_, '_>) -> bool {
        let share = ["opacity", "fill-opacity"]
            .iter()
            .filter_map(|name| node.attribute(*name)?.parse::<f32>().ok())
            .product();
        let colour = node.attribute("fill").and_then(|text| colour(text, share));
        let Some([red, green, blue]) = colour else { return false };
        self.content.set_fill_rgb(red, green, blue);
        true
    }

    /// Sets colour, width and dashes of lines; returns false if there is no stroke.
    fn stroke(&mut self, node: Node<'_, '_>) -> bool {
        let Some([red, green, blue]) = node.attribute("stroke").and_then(|text| colour(text, 1.0))
        else {
            return false;
        };
        self.content.set_stroke_rgb(red, green, blue);
        self.content.set_line_width(number(node, "stroke-width"));
        self.content.set_line_join(LineJoinStyle::RoundJoin);
        let dashes = node.attribute("stroke-dasharray").unwrap_or_default();
        let dashes = dashes.split(' ').filter_map(|length| length.parse::<f32>().ok());
        self.content.set_dash_pattern(dashes, 0.0);
        true
    }

    fn polyline(&mut self, points: &str) {
        for (at, point) in points.split(' ').enumerate() {
            let Some((x, y)) = point.split_once(',') else { continue };
            let (Ok(x), Ok(y)) = (x.parse::<f32>(), y.parse::<f32>()) else { continue };
            if at == 0 {
                self.content.move_to(x, self.height - y);
            } else {
                self.content.line_to(x, self.height - y);
            }
        }
    }

    fn circle(&mut self, node: Node<'_, '_>) {
        let (x, y, r) = (number(node, "cx"), self.height - number(node, "cy"), number(node, "r"));
        let c = QUARTER * r;
        self.content
            .move_to(x + r, y)
            .cubic_to(x + r, y + c, x + c, y + r, x, y + r)
            .cubic_to(x - c, y + r, x - r, y + c, x - r, y)
            .cubic_to(x - r, y - c, x - c, y - r, x, y - r)
            .cubic_to(x + c, y - r, x + r, y - c, x + r, y)
            .close_path();
    }

    fn text(&mut self, node: Node<'_, '_>) {
        let size = TEXT_SIZE as f32;
        let (mut glyphs, mut wide) = (Vec::new(), 0.0);
        for character in node.text().unwrap_or_default().chars() {
            let found = self.face.glyph_index(character).map(|glyph| (glyph, character));
            let found = found.or_else(|| Some((self.face.glyph_index(UNKNOWN)?, UNKNOWN)));
            let Some((glyph, character)) = found else { continue };
            self.used.insert(glyph.0, character);
            wide += width_of(self.face, glyph) / 1000.0 * size;
            glyphs.extend(glyph.0.to_be_bytes());
        }
        let (x, y) = (number(node, "x"), self.height - number(node, "y"));
        let back = match node.attribute("text-anchor") {
            Some("middle") => wide / 2.0,
            Some("end") => wide,
            _ => 0.0,
        };
        // Only the name of the vertical axis is rotated; it reads upward.
        let matrix = match node.attribute("transform") {
            Some(_) => [0.0, 1.0, -1.0, 0.0, x, y - back],
            None => [1.0, 0.0, 0.0, 1.0, x - back, y],
        };
        let text = self.content.begin_text();
        text.set_font(FONT_HERE, size).set_text_matrix(matrix).show(Str(&glyphs)).end_text();
    }
}

/// Returns the width of a glyph in thousandths of the text's size.
fn width_of(face: &Face<'_>, glyph: GlyphId) -> f32 {
    let units = f32::from(face.units_per_em().max(1));
    f32::from(face.glyph_hor_advance(glyph).unwrap_or(0)) * 1000.0 / units
}

/// Returns the file of one page with its font.
fn file(
    content: &[u8],
    (width, height): (f32, f32),
    face: &Face<'_>,
    used: &BTreeMap<u16, char>,
) -> Vec<u8> {
    let id = Ref::new;
    let [catalog, pages, page, stream, font, cid, descriptor, data, map] =
        [id(1), id(2), id(3), id(4), id(5), id(6), id(7), id(8), id(9)];
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([page]).count(1);
    let mut leaf = pdf.page(page);
    leaf.media_box(Rect::new(0.0, 0.0, width, height)).parent(pages).contents(stream);
    leaf.resources().fonts().pair(FONT_HERE, font);
    leaf.finish();
    pdf.stream(stream, content);
    pdf.type0_font(font)
        .base_font(FONT_NAME)
        .encoding_predefined(Name(b"Identity-H"))
        .descendant_font(cid)
        .to_unicode(map);
    let mut glyphs = pdf.cid_font(cid);
    glyphs.subtype(CidFontType::Type2).base_font(FONT_NAME).system_info(IDENTITY);
    glyphs.font_descriptor(descriptor).default_width(0.0);
    glyphs.cid_to_gid_map_predefined(Name(b"Identity"));
    let mut widths = glyphs.widths();
    for glyph in used.keys() {
        widths.consecutive(*glyph, [width_of(face, GlyphId(*glyph))]);
    }
    widths.finish();
    glyphs.finish();
    let scale = |units: i16| f32::from(units) * 1000.0 / f32::from(face.units_per_em().max(1));
    let bounds = face.global_bounding_box();
    pdf.font_descriptor(descriptor)
        .name(FONT_NAME)
        .flags(FontFlags::SYMBOLIC)
        .bbox(Rect::new(
            scale(bounds.x_min),
            scale(bounds.y_min),
            scale(bounds.x_max),
            scale(bounds.y_max),
        ))
        .italic_angle(0.0)
        .ascent(scale(face.ascender()))
        .descent(scale(face.descender()))
        .cap_height(scale(face.capital_height().unwrap_or(face.ascender())))
        .stem_v(80.0)
        .font_file2(data);
    pdf.stream(data, FONT).pair(Name(b"Length1"), FONT.len() as i32);
    let mut characters = UnicodeCmap::new(Name(b"Figure"), IDENTITY);
    for (glyph, character) in used {
        characters.pair(*glyph, *character);
    }
    pdf.cmap(map, &characters.finish());
    pdf.finish()
}
