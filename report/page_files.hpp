#pragma once

#include <string_view>

/// The files of this folder that make the page, embedded when the library is built (embed.cmake).
namespace hipress::report {

extern const std::string_view kPageHtml;  ///< page.html, with a {{word}} for whatever is filled in
extern const std::string_view kPageCss;   ///< page.css
extern const std::string_view kPageJs;    ///< page.js

}  // namespace hipress::report
