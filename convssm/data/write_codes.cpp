// Codes are whole numbers below 65536: two bytes each, where a tokenizer has eight.
#include "convssm/data/write_codes.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "convssm/io/npz.h"
#include "convssm/io/tensor.h"
#include "convssm/ops/check.h"

namespace convssm::data {
namespace {

constexpr int64_t most_codes = 65536;

void check(const at::Tensor& codes, const at::Tensor& actions, int64_t codebook_size) {
  ops::require("write_codes", codebook_size >= 1 && codebook_size <= most_codes,
               "codebook_size must be 1 to {}, got {}", most_codes, codebook_size);
  ops::require("write_codes", codes.defined() && (codes.dim() == 3 || codes.dim() == 4) && codes.numel() > 0,
               "codes must be [T,h,w] or [N,T,h,w], got {}", codes.defined() ? ops::shape_text(codes.sizes()) : "none");
  ops::require("write_codes", codes.scalar_type() == at::kLong, "codes must be int64, got {}", ops::dtype_text(codes));
  const auto low = codes.min().item<int64_t>(), high = codes.max().item<int64_t>();
  ops::require("write_codes", low >= 0 && high < codebook_size, "codes must be 0 to {}, got {} to {}",
               codebook_size - 1, low, high);
  if (!actions.defined()) return;
  const int64_t dims = codes.dim() - 2;  // [T] or [N,T]
  const bool whole = actions.scalar_type() == at::kLong;
  ops::require("write_codes",
               actions.dim() == dims + (whole ? 0 : 1) && actions.sizes().slice(0, static_cast<size_t>(dims)) ==
                                                              codes.sizes().slice(0, static_cast<size_t>(dims)),
               "actions must be one for each frame of codes {}, int64 or rows of floats, got {} {}",
               ops::shape_text(codes.sizes()), ops::dtype_text(actions), ops::shape_text(actions.sizes()));
}

}  // namespace

void write_codes(const std::string& path, const at::Tensor& codes, const at::Tensor& actions, int64_t codebook_size,
                 const at::Tensor& revisit, const std::string& tokenizer) {
  check(codes, actions, codebook_size);
  const at::Tensor plain = codes.cpu().contiguous();
  io::Array small(io::DType::u16, plain.sizes().vec());
  const auto out = small.values<uint16_t>();
  const int64_t* from = plain.data_ptr<int64_t>();
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<uint16_t>(from[i]);
  std::vector<io::NamedArray> arrays{{"codes", small}};
  if (actions.defined()) arrays.push_back({"actions", io::to_array(actions)});
  if (revisit.defined()) arrays.push_back({"revisit", io::to_array(revisit)});
  arrays.push_back({"codebook_size", io::make_array<int64_t>({}, {codebook_size})});
  if (!tokenizer.empty()) {
    io::Array letters(io::DType::u8, {static_cast<int64_t>(tokenizer.size())});
    std::ranges::copy(tokenizer, letters.values<uint8_t>().begin());
    arrays.push_back({"tokenizer", letters});
  }
  io::write_npz(path, arrays);
}

}  // namespace convssm::data
