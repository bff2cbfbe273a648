// The interactive report: one HTML file with its script, style and data, that requests nothing.
//
//     shell    title, words, a content security policy with the hashes of script and style
//     data     base64 of gzip of: u32 length of the head, the head (JSON), the blobs
//     script   web/*.js, joined by tools/scripts/embed_page.py; section_KIND.js draws a section
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stageline::report {

/// The elements of a blob: in the page a typed array of the same name.
enum class BlobType : std::uint8_t { u8, u16, u32, i32, f64 };
std::string_view name(BlobType type);

/// As RFC 4648 has it, with padding.
std::string base64(std::string_view bytes);

/// A long list of numbers, little-endian.
struct PageBlob {
  std::string name;  // unique in its section
  BlobType type = BlobType::u8;
  std::string bytes;
};

PageBlob blob_of(std::string name, const std::vector<std::uint8_t>& values);
PageBlob blob_of(std::string name, const std::vector<std::uint16_t>& values);
PageBlob blob_of(std::string name, const std::vector<std::uint32_t>& values);
PageBlob blob_of(std::string name, const std::vector<std::int32_t>& values);
PageBlob blob_of(std::string name, const std::vector<double>& values);

/// A part of the page under a heading of its own.
struct PageSection {
  std::string kind;   // which web/section_KIND.js draws it
  std::string title;  // empty: no heading
  std::string data;   // a JSON text
  std::vector<PageBlob> blobs;
};

/// Texts may hold anything: the page shows them as text.
struct Page {
  std::string title;
  std::string subtitle;
  std::vector<std::string> footnotes;
  std::vector<PageSection> sections;
};

/// The whole file. The bytes depend on the page and the version alone.
std::string page_html(const Page& page);

/// Paragraphs.
PageSection text_section(std::string title, const std::vector<std::string>& paragraphs);

}  // namespace stageline::report
