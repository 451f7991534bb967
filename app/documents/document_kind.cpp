// SPDX-License-Identifier: MIT
#include "documents/document_kind.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace snapkv::documents {
namespace {

using namespace std::string_view_literals;

struct Signature {
  size_t at;
  std::string_view bytes;
  const char* what;
};

constexpr std::array kSignatures = {
    Signature{0, "\xff\xd8\xff"sv, "a JPEG image"},
    Signature{0, "\x89PNG\r\n"sv, "a PNG image"},
    Signature{0, "GIF87a"sv, "a GIF image"},
    Signature{0, "GIF89a"sv, "a GIF image"},
    Signature{8, "WEBP"sv, "a WebP image"},
    Signature{8, "WAVE"sv, "a WAV sound"},
    Signature{8, "AVI LIST"sv, "an AVI video"},
    Signature{0, "II*\0"sv, "a TIFF image"},
    Signature{0, "MM\0*"sv, "a TIFF image"},
    Signature{4, "ftypheic"sv, "a HEIC image"},
    Signature{4, "ftypavif"sv, "an AVIF image"},
    Signature{4, "ftyp"sv, "an MP4 video or sound"},
    Signature{0, "\x1a\x45\xdf\xa3"sv, "a Matroska or WebM video"},
    Signature{0, "ID3"sv, "an MP3 sound"},
    Signature{0, "OggS"sv, "an Ogg sound or video"},
    Signature{0, "fLaC"sv, "a FLAC sound"},
    Signature{0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"sv,
              "an old Word, Excel or PowerPoint file (save it as .docx or PDF)"},
    Signature{0, "{\\rtf"sv, "an RTF document (save it as .docx or PDF)"},
    Signature{0, "%!PS"sv, "a PostScript file (make it a PDF, with ps2pdf for example)"},
    Signature{0, "AT&TFORM"sv, "a DjVu document"},
    Signature{60, "BOOKMOBI"sv, "a Kindle book (make it an EPUB, with calibre for example)"},
    Signature{0, "\x1f\x8b"sv, "a gzip archive"},
    Signature{0,
              "\xfd"
              "7zXZ\0"sv,
              "an xz archive"},
    Signature{0, "\x28\xb5\x2f\xfd"sv, "a zstd archive"},
    Signature{0, "7z\xbc\xaf\x27\x1c"sv, "a 7z archive"},
    Signature{0, "Rar!\x1a\x07"sv, "a RAR archive"},
    Signature{4, "1AY&SY"sv, "a bzip2 archive"},
    Signature{257, "ustar"sv, "a tar archive"},
    Signature{0,
              "\x7f"
              "ELF"sv,
              "a program"},
    Signature{0, "SQLite format 3\0"sv, "an SQLite database"},
    Signature{0, "GGUF"sv, "a model (GGUF): name it with -m"},
    Signature{0, "SNAPKVC\n"sv, "a saved cache of snapkv: --load-cache or snapkv ask reads it"},
    Signature{0, "SNAPKVS\n"sv, "a saved cache of an older snapkv, to be made again"},
    Signature{0, "SNAPKVP\n"sv, "a saved cache of an older snapkv, to be made again"},
};

/// Whether there is a zero near the beginning, as in all of these formats but two: a text may begin
/// with the word GGUF.
bool is_binary(std::string_view bytes) {
  constexpr size_t kLook = 512;
  bytes = bytes.substr(0, kLook);
  return bytes.find('\0') != std::string_view::npos;
}

bool is_text_format(std::string_view signature) {
  return signature == "{\\rtf" || signature == "%!PS";
}

bool equal_ignoring_case(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == b;
}

/// `prefix` is in lower case.
bool begins_with(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(),
                    [](char expected, char found) { return equal_ignoring_case(found, expected); });
}

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() &&
         begins_with(text.substr(text.size() - suffix.size()), suffix);
}

std::string_view without_space(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n\f");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

/// An HTML or XHTML page: its doctype or its first element, after a byte order mark, an XML
/// declaration and comments.
bool is_html(std::string_view text) {
  constexpr size_t kMostComments = 20;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  text = without_space(text);
  for (size_t i = 0; i < kMostComments; ++i) {
    const bool is_comment = text.starts_with("<!--");
    if (!is_comment && !text.starts_with("<?")) break;
    const std::string_view end = is_comment ? "-->"sv : "?>"sv;
    const size_t at = text.find(end);
    if (at == std::string_view::npos) return false;
    text = without_space(text.substr(at + end.size()));
  }
  return begins_with(text, "<!doctype html") || begins_with(text, "<html");
}

}  // namespace

FoundKind find_kind(std::string_view bytes, std::string_view name) {
  constexpr size_t kPdfHeader = 1024;  // readers look for it in so many bytes
  if (bytes.substr(0, kPdfHeader).find("%PDF-") != std::string_view::npos &&
      (bytes.starts_with("%PDF-") || ends_with(name, ".pdf"))) {
    return {Kind::pdf};
  }
  if (bytes.starts_with("PK\x03\x04") || bytes.starts_with("PK\x05\x06")) return {Kind::zip};
  for (const Signature& signature : kSignatures) {
    const bool has_it =
        bytes.size() >= signature.at && bytes.substr(signature.at).starts_with(signature.bytes);
    if (has_it && (is_text_format(signature.bytes) || is_binary(bytes))) {
      return {Kind::other, signature.what};
    }
  }
  const bool has_ending =
      ends_with(name, ".html") || ends_with(name, ".htm") || ends_with(name, ".xhtml");
  return {has_ending || is_html(bytes) ? Kind::html : Kind::text};
}

}  // namespace snapkv::documents
