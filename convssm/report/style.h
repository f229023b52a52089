// The style sheet and the script of the page, as text.
#pragma once

namespace convssm::report {

// Light or dark as the reader's system is; one column on a phone.
extern const char* const style_sheet;

// Shows the values under the pointer in each chart. The page is complete without it.
extern const char* const script;

// Colours of lines: classes c0 ... c7 of the style sheet.
constexpr int line_colors = 8;

}  // namespace convssm::report
