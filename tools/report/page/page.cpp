// Packs the data, and writes the shell around them.
#include "tools/report/page/page.hpp"

#include <fmt/core.h>

#include <array>
#include <utility>

#include "sim/base/bits.hpp"
#include "sim/base/index.hpp"
#include "tools/base/json.hpp"
#include "tools/base/version.hpp"
#include "tools/report/page/web.hpp"
#include "tools/report/svg/text.hpp"
#include "traces/gzip.hpp"

namespace stageline::report {
namespace {

constexpr std::size_t alignment = 8;  // of each blob, so that the page reads it in place

template <class Unsigned>
void put(std::string& bytes, Unsigned value) {
  for (std::size_t byte = 0; byte < sizeof value; ++byte) {
    bytes += static_cast<char>((value >> (8 * byte)) & 0xFFU);
  }
}

template <class Unsigned, class Value>
PageBlob packed(std::string name, BlobType type, const std::vector<Value>& values) {
  PageBlob blob{std::move(name), type, {}};
  blob.bytes.reserve(values.size() * sizeof(Unsigned));
  for (const Value value : values) {
    if constexpr (sizeof value == 1) {
      blob.bytes += static_cast<char>(value);
    } else {
      put(blob.bytes, same_bits<Unsigned>(value));
    }
  }
  return blob;
}

void align(std::string& bytes) {
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
}

// The blobs of all sections, one behind the other, and where each of them is.
std::string data_of(const Page& page) {
  std::string blobs;
  std::string sections;
  for (const PageSection& section : page.sections) {
    Json places = Json::array();
    for (const PageBlob& blob : section.blobs) {
      align(blobs);
      places.push_back({{"name", blob.name},
                        {"type", name(blob.type)},
                        {"offset", blobs.size()},
                        {"bytes", blob.bytes.size()}});
      blobs += blob.bytes;
    }
    sections += fmt::format("{}{{\"kind\":{},\"title\":{},\"blobs\":{},\"data\":{}}}",
                            sections.empty() ? "" : ",\n", json_string(section.kind),
                            json_string(section.title), places.text(),
                            section.data.empty() ? "null" : section.data);
  }
  const std::string head = fmt::format(
      "{{\"title\":{},\"subtitle\":{},\"footnotes\":{},\"version\":{},\"sections\":[\n{}]}}",
      json_string(page.title), json_string(page.subtitle), Json(page.footnotes).text(),
      json_string(std::string(version())), sections);
  std::string bytes;
  put(bytes, static_cast<std::uint32_t>(head.size()));
  bytes += head;
  align(bytes);
  return bytes + blobs;
}

}  // namespace

std::string_view name(BlobType type) {
  constexpr std::array<std::string_view, 5> names{"u8", "u16", "u32", "i32", "f64"};
  return nth(names, type);
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto at = [&](std::size_t k) -> std::uint32_t {
      return i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U;
    };
    const std::uint32_t group = at(0) << 16U | at(1) << 8U | at(2);
    text += digits[group >> 18U];
    text += digits[group >> 12U & 63U];
    text += i + 1 < bytes.size() ? digits[group >> 6U & 63U] : '=';
    text += i + 2 < bytes.size() ? digits[group & 63U] : '=';
  }
  return text;
}

PageBlob blob_of(std::string name, const std::vector<std::uint8_t>& values) {
  return packed<std::uint8_t>(std::move(name), BlobType::u8, values);
}
PageBlob blob_of(std::string name, const std::vector<std::uint16_t>& values) {
  return packed<std::uint16_t>(std::move(name), BlobType::u16, values);
}
PageBlob blob_of(std::string name, const std::vector<std::uint32_t>& values) {
  return packed<std::uint32_t>(std::move(name), BlobType::u32, values);
}
PageBlob blob_of(std::string name, const std::vector<std::int32_t>& values) {
  return packed<std::uint32_t>(std::move(name), BlobType::i32, values);
}
PageBlob blob_of(std::string name, const std::vector<double>& values) {
  return packed<std::uint64_t>(std::move(name), BlobType::f64, values);
}

PageSection text_section(std::string title, const std::vector<std::string>& paragraphs) {
  Json data;
  data["paragraphs"] = Json(paragraphs);
  return {"text", std::move(title), data.text(), {}};
}

std::string page_html(const Page& page) {
  const WebText& script = page_script();
  const WebText& style = page_style();
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; "
      "style-src {}; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>",
      script.hash, style.hash, xml_escaped(page.title));
  html += style.text;
  html +=
      "</style>\n</head>\n<body>\n<noscript><p>This report is drawn by a script; allow it in this "
      "page.</p></noscript>\n<script type=\"application/octet-stream\" id=\"stageline-data\">";
  html += base64(gzipped(data_of(page)));
  html += "</script>\n<script type=\"module\">";
  html += script.text;
  html += "</script>\n</body>\n</html>\n";
  return html;
}

}  // namespace stageline::report
