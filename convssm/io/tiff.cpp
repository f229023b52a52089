// A page is found by the place of its directory, without walking over those before it.
#include "convssm/io/tiff.h"

#include "convssm/base/error.h"
#include "convssm/io/tiff_file.h"

namespace convssm::io {

TiffIndex index_tiff(std::shared_ptr<const Source> source) {
  TiffFile file(std::move(source));
  TiffIndex index;
  TiffPage first;
  do {
    if (file.is_auxiliary()) continue;
    TiffPage page = file.page();
    if (index.pages.empty()) first = page;
    if (!page.fits(first)) {
      file.fail("page {} is {} {}x{} with {} channels, the first {} {}x{} with {}; all must be alike",
                index.pages.size(), dtype_name(page.dtype), page.height, page.width, page.channels(),
                dtype_name(first.dtype), first.height, first.width, first.channels());
    }
    index.pages.push_back(page.place);
  } while (file.next());
  if (index.pages.empty()) file.fail("a TIFF file without a page");
  index.info = {first.dtype, {std::ssize(index.pages), first.height, first.width, first.channels()}};
  return index;
}

Array read_tiff(std::shared_ptr<const Source> source, const TiffIndex& index, int64_t first, int64_t count) {
  if (first < 0 || count < 1 || count > index.frames() - first) {
    fail(ErrorKind::usage, "[read_tiff] '{}' has {} frames, asked for {} from {} on", source->name(), index.frames(),
         count, first);
  }
  std::vector<int64_t> shape = index.info.shape;
  shape[0] = count;
  Array all = array_of_file(source->name(), index.info.dtype, shape);
  const size_t bytes = all.byte_count() / static_cast<size_t>(count);
  TiffFile file(std::move(source));
  for (int64_t k = 0; k < count; ++k) {
    file.go_to(index.pages[static_cast<size_t>(first + k)]);
    const TiffPage page = file.page();
    if (page.dtype != all.dtype() ||
        std::vector{page.height, page.width, page.channels()} != std::vector(shape.begin() + 1, shape.end())) {
      file.fail("page {} has changed since the file was opened", first + k);
    }
    file.read(page, all.bytes().data() + static_cast<size_t>(k) * bytes);
  }
  return all;
}

Array read_tiff(const std::string& path) { return read_tiff(open_source(path)); }

Array read_tiff(std::shared_ptr<const Source> source) {
  const TiffIndex index = index_tiff(source);
  return read_tiff(std::move(source), index, 0, index.frames());
}

}  // namespace convssm::io
