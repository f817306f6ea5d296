#pragma once

#include <string_view>

/// Files of the page. The build embeds them into the library (embed.cmake).
namespace hipress::report {

extern const std::string_view kPageHtml;  ///< page.html, with {{word}} placeholders
extern const std::string_view kPageCss;   ///< page.css
extern const std::string_view kPageJs;    ///< page.js

}  // namespace hipress::report
