// A tensor is a view: storage, offset, shape, strides. One that is its whole storage in C order is read straight into
// the result, any other is gathered from the storage. Storages must be stored, not deflated: their sizes are then those
// of the file and nothing large is allocated for a false one.
#include "convssm/io/torch_file.h"

#include <cstring>

#include "convssm/base/error.h"
#include "convssm/io/byte_cursor.h"
#include "convssm/io/pickle.h"
#include "convssm/io/text.h"
#include "convssm/io/torch_state.h"

namespace convssm::io {
namespace {

constexpr std::string_view pickle_suffix = "/data.pkl";

// The first pickle of a file before PyTorch 1.6: protocol 2 and the number 0x1950a86a20f9469cfc6c.
constexpr std::string_view legacy_magic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14);
constexpr std::string_view tar_magic = "ustar";
constexpr uint64_t tar_magic_offset = 257;

bool holds_at(const Source& source, uint64_t offset, std::string_view text) {
  if (source.size() < offset + text.size()) return false;
  std::string found(text.size(), '\0');
  source.read(offset, std::as_writable_bytes(std::span(found)));
  return found == text;
}

// Files of other formats that carry the same name get the command that converts them.
std::shared_ptr<const Source> refuse_other_formats(std::shared_ptr<const Source> source) {
  const bool tar = holds_at(*source, tar_magic_offset, tar_magic);
  if (tar || holds_at(*source, 0, legacy_magic)) {
    source->fail(
        0,
        "this is {}, the format of PyTorch before 1.6. If you trust the file, convert it: python3 -c "
        "\"import torch; torch.save(torch.load('old.pth', map_location='cpu'), 'new.pth')\" (from PyTorch 1.13 "
        "on, torch.load(..., weights_only=True) runs no code of the file)",
        tar ? "a tar file" : "an old torch.save file");
  }
  if (holds_at(*source, 0, "\x80")) source->fail(0, "this is a plain pickle, not a zip file of torch.save");
  return source;
}

// The folder in the archive, named after the file when it was saved.
std::string find_archive(const ZipFile& zip) {
  std::string archive;
  bool found = false;
  for (const ZipMember& member : zip.members()) {
    const size_t slash = member.name.find('/');
    if (slash == std::string::npos || member.name.substr(slash) != pickle_suffix) continue;
    if (found) throw FormatError(zip.name(), member.header_offset, "two members are named data.pkl");
    archive = member.name.substr(0, slash);
    found = true;
  }
  if (!found) throw FormatError(zip.name(), 0, "no member '.../data.pkl': a zip file, but not of torch.save");
  return archive;
}

void refuse_torchscript(const ZipFile& zip, const std::string& archive) {
  for (const ZipMember& member : zip.members()) {
    if (member.name != archive + "/constants.pkl" && !member.name.starts_with(archive + "/code/")) continue;
    throw FormatError(zip.name(), member.header_offset,
                      "this is a TorchScript program (torch.jit.save), not a file of tensors. If you trust the file, "
                      "convert it: python3 -c \"import torch; torch.save(torch.jit.load('old.pt', "
                      "map_location='cpu').state_dict(), 'new.pth')\"");
  }
}

// A member of known size, whole and with its checksum verified. PyTorch compresses nothing, and a compressed pickle
// could be a thousand times larger than the file.
void read_member(const ZipFile& zip, const ZipMember& member, std::span<std::byte> out) {
  if (member.method != ZipMethod::stored) {
    throw FormatError(
        zip.name(), member.header_offset,
        fmt::format("member {} is compressed, which torch.save never does: unpack the archive and pack it "
                    "with zip -0",
                    in_quotes(member.name)));
  }
  const auto reader = zip.open(member);
  reader->read(out);
  reader->finish();
}

std::vector<std::byte> read_small(const ZipFile& zip, const ZipMember& member) {
  std::vector<std::byte> bytes(member.method == ZipMethod::stored ? member.size : 0);
  read_member(zip, member, bytes);
  return bytes;
}

void check_byte_order(const ZipFile& zip, const ZipMember& member) {
  const auto bytes = read_small(zip, member);
  if (as_text(bytes) == "little") return;
  throw FormatError(zip.name(), member.data_offset,
                    fmt::format("the byte order is {}, only 'little' can be read: save the file on this machine",
                                in_quotes(as_text(bytes))));
}

bool is_whole_storage(const TorchTensorInfo& tensor) {
  int64_t expected = 1;
  for (size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return tensor.offset == 0 && expected == tensor.storage_elements;
}

// Copies the elements of a view in C order, a row (the last dimension) at a time.
void gather(const TorchTensorInfo& tensor, std::span<const std::byte> storage, Array& out) {
  const size_t item = dtype_size(tensor.dtype);
  const size_t rank = tensor.shape.size();
  const int64_t row = rank == 0 ? 1 : tensor.shape[rank - 1];
  const int64_t row_stride = rank == 0 ? 1 : tensor.strides[rank - 1];
  std::vector<int64_t> index(rank, 0);
  int64_t first = tensor.offset;
  std::byte* to = out.bytes().data();
  for (uint64_t left = out.element_count(); left > 0; left -= static_cast<uint64_t>(row)) {
    for (int64_t i = 0; i < row; ++i, to += item) {
      std::memcpy(to, &storage[static_cast<size_t>(first + i * row_stride) * item], item);
    }
    for (size_t d = rank; d-- > 1;) {
      if (tensor.shape[d - 1] == 1) continue;  // its stride may be any number
      first += tensor.strides[d - 1];
      if (++index[d - 1] < tensor.shape[d - 1]) break;
      first -= tensor.shape[d - 1] * tensor.strides[d - 1];
      index[d - 1] = 0;
    }
  }
}

}  // namespace

TorchFile::TorchFile(const std::string& path) : TorchFile(open_source(path)) {}

TorchFile::TorchFile(std::shared_ptr<const Source> source)
    : zip_(refuse_other_formats(std::move(source))), archive_(find_archive(zip_)) {
  refuse_torchscript(zip_, archive_);
  for (size_t i = 0; i < zip_.members().size(); ++i) members_.emplace(zip_.members()[i].name, i);
  if (const auto order = members_.find(archive_ + "/byteorder"); order != members_.end()) {
    check_byte_order(zip_, zip_.members()[order->second]);
  }
  const ZipMember& member = zip_.members()[members_.at(archive_ + std::string(pickle_suffix))];
  const std::string name = fmt::format("{}({})", zip_.name(), in_quotes(member.name));
  TorchState state = read_torch_state(Pickle(name, read_small(zip_, member), torch_rules));
  names_ = std::move(state.names);
  tensors_ = std::move(state.tensors);
  for (const std::string& tensor : names_) storage_member(tensors_.at(tensor), tensor);
}

// FormatError unless the storage is there and of the size that the pickle says.
const ZipMember& TorchFile::storage_member(const TorchTensorInfo& tensor, const std::string& name) const {
  const std::string path = archive_ + "/data/" + tensor.storage;
  const auto found = members_.find(path);
  if (found == members_.end()) {
    throw FormatError(zip_.name(), 0,
                      fmt::format("{}: its storage {} is not in the archive", in_quotes(name), in_quotes(path)));
  }
  const ZipMember& member = zip_.members()[found->second];
  const int64_t elements[] = {tensor.storage_elements};
  const auto expected = checked_byte_count(elements, dtype_size(tensor.dtype));
  if (expected != member.size) {
    throw FormatError(zip_.name(), member.header_offset,
                      fmt::format("{}: its storage {} has {} bytes, expected {} elements of {}", in_quotes(name),
                                  in_quotes(path), member.size, tensor.storage_elements, dtype_name(tensor.dtype)));
  }
  return member;
}

const TorchTensorInfo& TorchFile::info(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) fail_missing(zip_.name(), name, names_);
  return found->second;
}

Array TorchFile::read(const std::string& name) const {
  const TorchTensorInfo& tensor = info(name);
  const ZipMember& member = storage_member(tensor, name);
  const bool whole = is_whole_storage(tensor);
  Array array = array_of_file(zip_.name(), tensor.dtype, tensor.shape, whole ? 0 : member.size);
  if (whole) {
    read_member(zip_, member, array.bytes());
  } else {
    Array storage = array_of_file(zip_.name(), tensor.dtype, {tensor.storage_elements});
    read_member(zip_, member, storage.bytes());
    gather(tensor, storage.bytes(), array);
  }
  normalize_bools(array);
  return array;
}

}  // namespace convssm::io
