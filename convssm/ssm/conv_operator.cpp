// Kernels are composed by a convolution of one with the other as images. The tree is the recursion of Blelloch's scan:
// combine neighbours, scan the half, fill in the even elements. The multiplications are counted while it runs, since
// the point of this operator in the paper is what it costs when kernels grow.
#include "convssm/ssm/conv_operator.h"

#include <ATen/ATen.h>

#include "convssm/ops/check.h"
#include "convssm/ops/conv2d.h"

namespace convssm::ssm {
namespace {

using ops::require;

// Rows or columns -before .. size+after-1 of a periodic frame, however often that wraps around.
at::Tensor wrap(const at::Tensor& x, int64_t dim, int64_t before, int64_t after) {
  const int64_t size = x.size(dim);
  const auto places = at::arange(-before, size + after, x.options().dtype(at::kLong));
  return x.index_select(dim, at::remainder(places, size));
}

at::Tensor apply_periodic(const at::Tensor& a, const at::Tensor& x) {
  const int64_t top = (a.size(2) - 1) / 2, left = (a.size(3) - 1) / 2;
  const auto wrapped = wrap(wrap(x, 2, top, a.size(2) - 1 - top), 3, left, a.size(3) - 1 - left);
  const auto y = ops::conv2d(wrapped, a);
  return y.narrow(2, top, x.size(2)).narrow(3, left, x.size(3));
}

at::Tensor counted_apply(const at::Tensor& a, const at::Tensor& x, Boundary boundary, Macs* macs) {
  if (macs) macs->apply += apply_macs(a, x);
  return apply_kernel(a, x, boundary);
}

at::Tensor counted_compose(const at::Tensor& a_j, const at::Tensor& a_i, Macs* macs) {
  if (macs) macs->compose += compose_macs(a_j, a_i);
  return compose_kernels(a_j, a_i);
}

// Neighbours combined pairwise. The kernel of the first pair starts at time 0, where no state comes in, so it is never
// applied and not composed either: it would be the widest of its level.
std::vector<ScanElement> combine_pairs(const std::vector<ScanElement>& c, Boundary boundary, Macs* macs) {
  std::vector<ScanElement> pairs(c.size() / 2);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto &first = c[2 * i], &second = c[2 * i + 1];
    if (i > 0) pairs[i].a = counted_compose(second.a, first.a, macs);
    pairs[i].b = counted_apply(second.a, first.b, boundary, macs) + second.b;
  }
  return pairs;
}

std::vector<at::Tensor> tree(const std::vector<ScanElement>& c, Boundary boundary, Macs* macs) {
  std::vector<at::Tensor> x(c.size());
  x[0] = c[0].b;
  if (c.size() == 1) return x;
  const auto odd = tree(combine_pairs(c, boundary, macs), boundary, macs);
  for (size_t i = 0; i < odd.size(); ++i) x[2 * i + 1] = odd[i];
  for (size_t k = 2; k < c.size(); k += 2) x[k] = counted_apply(c[k].a, x[k - 1], boundary, macs) + c[k].b;
  return x;
}

}  // namespace

at::Tensor apply_kernel(const at::Tensor& a, const at::Tensor& x, Boundary boundary) {
  ops::require_dims("apply_kernel", "a", a, 4, "[O,P,k,k]");
  ops::require_dims("apply_kernel", "x", x, 4, "[B,P,H,W]");
  return boundary == Boundary::zero ? ops::conv2d(x, a) : apply_periodic(a, x);
}

at::Tensor compose_kernels(const at::Tensor& a_j, const at::Tensor& a_i) {
  ops::require_dims("compose_kernels", "a_j", a_j, 4, "[O,M,k,k]");
  ops::require_dims("compose_kernels", "a_i", a_i, 4, "[M,P,k,k]");
  require("compose_kernels", a_j.size(2) % 2 == 1 && a_j.size(3) % 2 == 1, "a_j must have odd widths, got {}",
          ops::shape_text(a_j.sizes()));
  // (a_j o a_i)[q] = sum over m of a_j[m] a_i[q - m]: the columns of a_i are the images, and padding them by half of
  // a_j lets the zero padding of conv2d add the other half.
  const int64_t top = a_j.size(2) / 2, left = a_j.size(3) / 2;
  const auto images = at::constant_pad_nd(a_i.transpose(0, 1), {left, left, top, top});
  return ops::conv2d(images, a_j.flip({2, 3})).transpose(0, 1);
}

int64_t apply_macs(const at::Tensor& a, const at::Tensor& x) { return a.numel() * x.size(0) * x.size(2) * x.size(3); }

int64_t compose_macs(const at::Tensor& a_j, const at::Tensor& a_i) {
  return a_j.numel() * a_i.size(1) * a_i.size(2) * a_i.size(3);
}

void require_associative(const at::Tensor& a, Boundary boundary) {
  const bool pointwise = a.size(2) == 1 && a.size(3) == 1;
  require(
      "conv_operator", pointwise || boundary == Boundary::periodic,
      "composed {}x{} kernels are not exact on a zero boundary, because what leaves the frame is cut off after every "
      "step; use the sequential scan, a 1x1 state kernel or the periodic boundary",
      a.size(2), a.size(3));
}

ScanElement combine(const ScanElement& q_i, const ScanElement& q_j, Boundary boundary, Macs* macs) {
  require_associative(q_i.a, boundary);
  require_associative(q_j.a, boundary);
  return {counted_compose(q_j.a, q_i.a, macs), counted_apply(q_j.a, q_i.b, boundary, macs) + q_j.b};
}

std::vector<at::Tensor> scan_sequential(const std::vector<ScanElement>& elements, Boundary boundary, Macs* macs) {
  require("conv_operator", !elements.empty(), "the scan needs at least one element, got 0");
  std::vector<at::Tensor> x{elements[0].b};
  for (size_t k = 1; k < elements.size(); ++k) {
    x.push_back(counted_apply(elements[k].a, x.back(), boundary, macs) + elements[k].b);
  }
  return x;
}

std::vector<at::Tensor> scan_tree(const std::vector<ScanElement>& elements, Boundary boundary, Macs* macs) {
  require("conv_operator", !elements.empty(), "the scan needs at least one element, got 0");
  for (const auto& element : elements) require_associative(element.a, boundary);
  return tree(elements, boundary, macs);
}

}  // namespace convssm::ssm
