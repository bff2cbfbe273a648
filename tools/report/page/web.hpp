// What the build makes of web/: the script, the style sheet, and their hashes for the policy.
#pragma once

#include <string>

namespace stageline::report {

/// An inline text, and its hash as a content security policy names it: "'sha256-…'".
struct WebText {
  std::string text;
  std::string hash;
};
const WebText& page_script();
const WebText& page_style();

}  // namespace stageline::report
