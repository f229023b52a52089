// A page of which people write the text and the program the numbers. What is made stands between two marks:
//   <!-- bench cost -->
//   (the table)
//   <!-- end -->
#pragma once

#include <functional>
#include <string>

namespace convssm::report {

// The content of the block of this name, with a newline at its end; "" leaves what is there.
using MakeBlock = std::function<std::string(const std::string& name)>;

// The text with each block `<!-- PREFIX NAME -->` made anew; all else stays. Error(data) for a block without an end.
std::string fill_blocks(const std::string& text, const std::string& prefix, const MakeBlock& make);

// The page, which must be there to be filled. Error(io) if it is not.
std::string read_page(const std::string& path);

}  // namespace convssm::report
