// Here the calls in the pickle's tree get their meaning: _rebuild_tensor_v2 is a tensor, nothing else is. Every view is
// checked against its storage while the tree is read, so reading a tensor later needs no check. A view may repeat
// elements (stride 0) only up to a limit, else a small file could ask for all memory.
#include "convssm/io/torch_state.h"

#include <algorithm>
#include <array>
#include <optional>

#include "convssm/io/text.h"

namespace convssm::io {
namespace {

constexpr std::string_view rebuild_tensor = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view rebuild_parameter = "torch._utils._rebuild_parameter";
// A tensor may be there under many names, and each keeps its shape and the key of its storage.
constexpr size_t max_rank = 16;
constexpr size_t max_key = 64;
constexpr uint64_t max_expansion = 16;        // of a view over its storage, where its elements repeat (stride 0)
constexpr uint64_t free_expansion = 1 << 20;  // bytes for which that does not matter

constexpr std::array allowed = {
    PickleGlobal{pickle_ordered_dict, true}, PickleGlobal{rebuild_tensor, true},  PickleGlobal{rebuild_parameter, true},
    PickleGlobal{"torch.FloatStorage"},      PickleGlobal{"torch.DoubleStorage"}, PickleGlobal{"torch.HalfStorage"},
    PickleGlobal{"torch.BFloat16Storage"},   PickleGlobal{"torch.LongStorage"},   PickleGlobal{"torch.IntStorage"},
    PickleGlobal{"torch.ShortStorage"},      PickleGlobal{"torch.CharStorage"},   PickleGlobal{"torch.ByteStorage"},
    PickleGlobal{"torch.BoolStorage"},
};

constexpr std::string_view advice =
    "If you trust the file, save its tensors alone: python3 -c \"import torch; "
    "torch.save(torch.load('old.pth', map_location='cpu')['state_dict'], 'new.pth')\"";

std::optional<DType> dtype_of_storage(std::string_view type) {
  if (type == "torch.FloatStorage") return DType::f32;
  if (type == "torch.DoubleStorage") return DType::f64;
  if (type == "torch.HalfStorage") return DType::f16;
  if (type == "torch.BFloat16Storage") return DType::bf16;
  if (type == "torch.LongStorage") return DType::i64;
  if (type == "torch.IntStorage") return DType::i32;
  if (type == "torch.ShortStorage") return DType::i16;
  if (type == "torch.CharStorage") return DType::i8;
  if (type == "torch.ByteStorage") return DType::u8;
  if (type == "torch.BoolStorage") return DType::bool8;
  return std::nullopt;
}

void require(const Pickle& pickle, PickleRef value, PickleKind kind, std::string_view what) {
  if (pickle.kind(value) != kind) pickle.fail(value, "expected {}, found {}", what, pickle.describe(value));
}

// The persistent id of a storage: ('storage', torch.FloatStorage, key, location, elements)
void read_storage(const Pickle& pickle, PickleRef storage, TorchTensorInfo& tensor) {
  require(pickle, storage, PickleKind::persistent, "the storage of a tensor");
  const PickleRef id = pickle.items(storage)[0];
  require(pickle, id, PickleKind::tuple, "the tuple of a storage");
  const auto fields = pickle.items(id);
  if (fields.size() != 5) pickle.fail(id, "expected a storage's tuple of 5 values, found {}", fields.size());
  require(pickle, fields[0], PickleKind::text, "the text 'storage'");
  if (pickle.text(fields[0]) != "storage") pickle.fail(id, "expected 'storage', found {}", pickle.describe(fields[0]));
  require(pickle, fields[1], PickleKind::global, "the type of a storage");
  const auto dtype = dtype_of_storage(pickle.global(fields[1]));
  if (!dtype) pickle.fail(id, "expected the type of a storage, found {}", pickle.describe(fields[1]));
  require(pickle, fields[2], PickleKind::text, "the key of a storage");
  require(pickle, fields[4], PickleKind::integer, "the number of elements of a storage");
  if (pickle.text(fields[2]).size() > max_key) {
    pickle.fail(id, "the key {} of a storage has more than {} bytes", in_quotes(pickle.text(fields[2])), max_key);
  }
  tensor.dtype = *dtype;
  tensor.storage = pickle.text(fields[2]);
  tensor.storage_elements = pickle.integer(fields[4]);
  if (tensor.storage_elements < 0) pickle.fail(id, "a storage of {} elements", tensor.storage_elements);
}

std::vector<int64_t> read_integers(const Pickle& pickle, PickleRef tuple, std::string_view what) {
  require(pickle, tuple, PickleKind::tuple, what);
  if (pickle.items(tuple).size() > max_rank) {
    pickle.fail(tuple, "a tensor of {} dimensions, above the limit of {}", pickle.items(tuple).size(), max_rank);
  }
  std::vector<int64_t> numbers;
  for (const PickleRef item : pickle.items(tuple)) {
    require(pickle, item, PickleKind::integer, "a whole number");
    numbers.push_back(pickle.integer(item));
  }
  return numbers;
}

// The last element must lie in the storage: offset + sum of (length - 1) * stride, without overflow.
bool lies_inside(const TorchTensorInfo& tensor) {
  int64_t last = tensor.offset;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    int64_t reach = 0;
    if (__builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &reach)) return false;
    if (__builtin_add_overflow(last, reach, &last)) return false;
  }
  return last < tensor.storage_elements;
}

void check_view(const Pickle& pickle, PickleRef at, const TorchTensorInfo& tensor) {
  const std::string shape = shape_text(tensor.shape), strides = shape_text(tensor.strides);
  if (tensor.strides.size() != tensor.shape.size()) pickle.fail(at, "shape {} and strides {} differ", shape, strides);
  const auto size = checked_byte_count(tensor.shape, dtype_size(tensor.dtype));
  if (!size) pickle.fail(at, "shape {} has a negative length or leaves 64 bits", shape);
  for (const int64_t stride : tensor.strides) {
    if (stride < 0) pickle.fail(at, "strides {}: a stride must not be negative", strides);
  }
  if (tensor.offset < 0) pickle.fail(at, "the offset {} in the storage is negative", tensor.offset);
  if (*size == 0) return;
  if (!lies_inside(tensor)) {
    pickle.fail(at, "shape {} with strides {} from element {} leaves its storage of {} elements", shape, strides,
                tensor.offset, tensor.storage_elements);
  }
  const uint64_t elements = *size / dtype_size(tensor.dtype);
  if (*size > free_expansion && elements / max_expansion > static_cast<uint64_t>(tensor.storage_elements)) {
    pickle.fail(at, "shape {} repeats the {} elements of its storage: save it with .contiguous()", shape,
                tensor.storage_elements);
  }
}

bool is_tensor(const Pickle& pickle, PickleRef value) { return pickle.kind(value) == PickleKind::call; }

// _rebuild_parameter(tensor, requires_grad, hooks), or
// _rebuild_tensor_v2(storage, offset, shape, strides, requires_grad, hooks[, metadata])
TorchTensorInfo read_tensor(const Pickle& pickle, PickleRef call) {
  PickleRef arguments = pickle.items(call)[1];
  if (pickle.global(pickle.items(call)[0]) == rebuild_parameter) {
    if (pickle.items(arguments).empty()) pickle.fail(call, "a parameter without a tensor");
    call = pickle.items(arguments)[0];
    require(pickle, call, PickleKind::call, "the tensor of a parameter");
    arguments = pickle.items(call)[1];
  }
  if (pickle.global(pickle.items(call)[0]) != rebuild_tensor) {
    pickle.fail(call, "expected a tensor, found {}", pickle.describe(call));
  }
  const auto fields = pickle.items(arguments);
  if (fields.size() < 4) pickle.fail(call, "a tensor needs 4 values at least, found {}", fields.size());
  TorchTensorInfo tensor;
  read_storage(pickle, fields[0], tensor);
  require(pickle, fields[1], PickleKind::integer, "the offset in a storage");
  tensor.offset = pickle.integer(fields[1]);
  tensor.shape = read_integers(pickle, fields[2], "a shape");
  tensor.strides = read_integers(pickle, fields[3], "strides");
  check_view(pickle, call, tensor);
  return tensor;
}

bool holds_tensors(const Pickle& pickle, PickleRef value) {
  if (pickle.kind(value) != PickleKind::dict) return false;
  const auto items = pickle.items(value);
  for (size_t i = 1; i < items.size(); i += 2) {
    if (is_tensor(pickle, items[i])) return true;
  }
  return false;
}

// "'model', 'ema'": the keys of these dicts, a few of them.
std::string key_list(const Pickle& pickle, std::span<const PickleRef> keys) {
  std::string list;
  for (const PickleRef key : keys.first(std::min<size_t>(keys.size(), 5))) {
    list += list.empty() ? "" : ", ";
    list += pickle.kind(key) == PickleKind::text ? in_quotes(pickle.text(key)) : pickle.describe(key);
  }
  return list + (keys.size() > 5 ? ", ..." : "");
}

// The dict at the top, or the one in it that holds tensors; 'state_dict' goes before all others.
PickleRef find_state_dict(const Pickle& pickle) {
  const PickleRef root = pickle.root();
  require(pickle, root, PickleKind::dict, "a dict of names and tensors");
  std::vector<PickleRef> keys, dicts;
  std::unordered_map<PickleRef, bool> searched;  // the same dict may be there many times
  const auto items = pickle.items(root);
  for (size_t i = 0; i < items.size(); i += 2) {
    const auto [known, first] = searched.try_emplace(items[i + 1], false);
    if (first) known->second = holds_tensors(pickle, items[i + 1]);
    if (!known->second) continue;
    if (pickle.kind(items[i]) == PickleKind::text && pickle.text(items[i]) == "state_dict") return items[i + 1];
    if (!first) continue;
    keys.push_back(items[i]);
    dicts.push_back(items[i + 1]);
  }
  if (items.empty() || holds_tensors(pickle, root)) return root;
  if (dicts.empty()) pickle.fail(root, "there are no tensors in {}", pickle.describe(root));
  if (dicts.size() > 1) {
    pickle.fail(root, "several dicts hold tensors: {}. Save one of them alone: {}", key_list(pickle, keys), advice);
  }
  return dicts[0];
}

}  // namespace

const PickleRules torch_rules{allowed, advice};

TorchState read_torch_state(const Pickle& pickle) {
  const PickleRef dict = find_state_dict(pickle);
  const auto items = pickle.items(dict);
  TorchState state;
  for (size_t i = 0; i < items.size(); i += 2) {
    if (!is_tensor(pickle, items[i + 1])) continue;
    require(pickle, items[i], PickleKind::text, "the name of a tensor");
    const std::string name(pickle.text(items[i]));
    if (!is_utf8(name)) pickle.fail(items[i], "the name {} is not UTF-8", in_quotes(name));
    if (state.tensors.contains(name)) pickle.fail(items[i], "{}: the name is there twice", in_quotes(name));
    state.tensors.emplace(name, read_tensor(pickle, items[i + 1]));
    state.names.push_back(name);
  }
  return state;
}

}  // namespace convssm::io
