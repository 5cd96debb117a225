// The C interface, first half: names, values, steps. It checks arguments; exceptions and forks are
// the business of abi_guard.h.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/collectors.h"
#include "collectors/hook/abi/abi_guard.h"
#include "collectors/hook/identity/bounded_json.h"
#include "core/mutex.h"

namespace hook = tocsin::hook;
namespace core = tocsin::core;

namespace {

using hook::after_fork_in_child;
using hook::fail;
using hook::guarded;
using hook::make_client;
using hook::process;
using hook::Process;
using hook::text;
using hook::with;

// Where flags stand in a row's meta (docs/wire.md); below them are its dtype and role.
constexpr std::uint64_t kRowFlags = ~std::uint64_t{0xffff};

// Of a fixed size, so that nothing of it is destroyed: handlers of exit() run after what a thread's
// objects held is gone.
constexpr std::size_t kErrorBytes = 2048;
thread_local std::array<char, kErrorBytes> last_error = {"no error"};

// Copies what both sides know of a struct that begins with its size.
template <typename T>
T known_part(const T* given) {
  T out{};
  std::memcpy(static_cast<void*>(&out), given,
              std::min<std::size_t>(sizeof out, static_cast<std::size_t>(given->size)));
  return out;
}

// False: more dimensions than can be, or missing pointers.
bool lend(const tocsin_tensor& given, hook::LentTensor& out) {
  if (given.size < sizeof(tocsin_tensor) || given.ndim > 64) return false;
  if (given.ndim > 0 && given.shape == nullptr) return false;
  out.id = given.id;
  out.data = given.data;
  out.shape = {given.shape, given.ndim};
  out.strides = {given.strides, given.strides == nullptr ? 0 : given.ndim};
  out.dtype = static_cast<core::Dtype>(given.dtype);
  out.flags = given.flags & kRowFlags;
  out.off_grid = (given.flags & TOCSIN_TENSOR_OFF_GRID) != 0;
  out.raw = (given.flags & TOCSIN_TENSOR_RAW) != 0;
  if (given.data != nullptr) return true;
  return std::any_of(out.shape.begin(), out.shape.end(), [](std::int64_t n) { return n == 0; });
}

bool known_dtype(std::int32_t dtype) {
  return dtype >= 0 && dtype < 64 &&
         (dtype == 0 || core::to_string(static_cast<core::Dtype>(dtype)) != "unknown");
}

}  // namespace

namespace tocsin::hook {

std::int32_t fail(std::int32_t code, const std::string& words) {
  std::size_t size = std::min(words.size(), kErrorBytes - 1);
  // No half of a letter at the end.
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(words[at]) & 0xC0U) == 0x80U;
  };
  while (size > 0 && size < words.size() && continues(size)) --size;
  std::copy_n(words.begin(), size, last_error.begin());
  last_error.at(size) = '\0';
  return code;
}

}  // namespace tocsin::hook

extern "C" {

int32_t tocsin_abi_version(void) { return TOCSIN_ABI_VERSION; }

const char* tocsin_last_error(void) { return last_error.data(); }

int32_t tocsin_open(const tocsin_options* options, tocsin_client** out) {
  return guarded([&]() -> std::int32_t {
    if (options == nullptr || out == nullptr || options->size < sizeof(std::uint64_t)) {
      return fail(TOCSIN_INVALID,
                  "tocsin_open: options with their size, and a place for the client");
    }
    *out = nullptr;
    const char* disabled = std::getenv("TOCSIN_DISABLED");
    if (disabled != nullptr && *disabled != '\0' && std::strcmp(disabled, "0") != 0) {
      return TOCSIN_DISABLED;
    }
    Process& self = process();
    static const int watching = pthread_atfork(nullptr, nullptr, after_fork_in_child);
    (void)watching;
    const core::MutexLock lock(self.mutex);
    if (self.open != nullptr) {
      *out = self.open;
      return TOCSIN_OK;
    }
    tocsin_options known = known_part(options);
    auto made = make_client(known, self);
    if (!made) return fail(TOCSIN_INVALID, made.error().message);
    auto handle = std::make_unique<tocsin_client>();
    handle->client = *std::move(made);
    handle->generation = self.generation.load();
    handle->pid = getpid();
    hook::Client::start(handle->client);
    *out = self.open = handle.release();
    return TOCSIN_OK;
  });
}

int32_t tocsin_name(tocsin_client* handle, int32_t type, const char* name, size_t length,
                    const tocsin_name_info* given, uint64_t* id) {
  return with(handle, [&](hook::Client& self) -> std::int32_t {
    if (name == nullptr || id == nullptr) {
      return fail(TOCSIN_INVALID, "tocsin_name: a name and a place for its id");
    }
    const std::string_view view(name, length);
    if (type == TOCSIN_NAME_COLLECTION) {
      *id = self.session().collection(view);
      return *id != 0 ? TOCSIN_OK : fail(TOCSIN_INVALID, "more than 64 collections");
    }
    if (type == TOCSIN_NAME_COMMAND) {
      self.commands().register_slot(view);
      *id = core::name_hash(view);
      return TOCSIN_OK;
    }
    if (type < 1 || type > 8) return fail(TOCSIN_INVALID, "tocsin_name: unknown type of name");
    if (type == TOCSIN_NAME_SPAN_ARGS) {
      if (auto fits = core::check_json_bounds(view, hook::kMaxGivenJson); !fits) {
        return fail(TOCSIN_INVALID, "arguments of a span: " + fits.error().message);
      }
    }
    hook::NameInfo info;
    info.type = static_cast<core::DictionaryType>(type);
    if (given != nullptr) {
      const tocsin_name_info known = known_part(given);
      if (!known_dtype(known.dtype) || known.role > 17 || known.ndim > 64) {
        return fail(TOCSIN_INVALID, "tocsin_name: unknown dtype or role, or too many dimensions");
      }
      info.dtype = static_cast<core::Dtype>(known.dtype);
      if (known.role >= 0) info.role = static_cast<core::Role>(known.role);
      if (known.dims != nullptr) info.dims.assign(known.dims, known.dims + known.ndim);
      info.attrs = text(known.attrs);
      if (auto fits = core::check_json_bounds(info.attrs, hook::kMaxGivenJson); !fits) {
        return fail(TOCSIN_INVALID, "attributes of a name: " + fits.error().message);
      }
      info.collection = text(known.collection);
    }
    *id = self.session().name(view, info);
    return TOCSIN_OK;
  });
}

int32_t tocsin_wanted(tocsin_client* handle, const char* name, size_t length, int32_t role) {
  return with(handle, [&](hook::Client& self) -> std::int32_t {
    if (name == nullptr || length == 0 || role > 17) {
      return fail(TOCSIN_INVALID, "tocsin_wanted: a name, and a role or -1");
    }
    std::optional<core::Role> stated;
    if (role >= 0) stated = static_cast<core::Role>(role);
    return self.session().wanted({name, length}, stated) ? TOCSIN_OK : TOCSIN_NOT_DUE;
  });
}

int32_t tocsin_plan_changes(tocsin_client* handle) {
  return with(handle, [](hook::Client& self) { return self.session().plan_changes(); });
}

int32_t tocsin_set_mode(tocsin_client* handle, int32_t mode) {
  return with(handle, [&](hook::Client& self) -> std::int32_t {
    if (mode < 0 || mode > 3) return fail(TOCSIN_INVALID, "unknown mode");
    self.session().set_mode(static_cast<core::Mode>(mode));
    return TOCSIN_OK;
  });
}

int32_t tocsin_due(tocsin_client* handle, uint64_t collection) {
  return with(handle, [&](hook::Client& self) -> std::int32_t {
    return self.session().due(collection) ? TOCSIN_OK : TOCSIN_NOT_DUE;
  });
}

int32_t tocsin_due_at(tocsin_client* handle, uint64_t collection, uint32_t ahead) {
  return with(handle, [&](hook::Client& self) -> std::int32_t {
    return self.session().due_at(collection, ahead) ? TOCSIN_OK : TOCSIN_NOT_DUE;
  });
}

int32_t tocsin_due_of(tocsin_client* handle, const uint64_t* ids, size_t count, uint32_t ahead,
                      uint8_t* due) {
  return with(handle, [&](hook::Client& self) -> std::int32_t {
    if ((ids == nullptr || due == nullptr) && count > 0)
      return fail(TOCSIN_INVALID, "no tensors, or no place for what is due");
    self.session().due_of({ids, count}, ahead, {due, count});
    return TOCSIN_OK;
  });
}

int32_t tocsin_tensors(tocsin_client* handle, const tocsin_tensor* tensors, size_t count) {
  return with(handle, [&](hook::Client& self) -> std::int32_t {
    if (tensors == nullptr && count > 0) return fail(TOCSIN_INVALID, "no tensors");
    std::vector<hook::LentTensor> lent(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (!lend(tensors[i], lent[i]) || !known_dtype(tensors[i].dtype)) {
        return fail(TOCSIN_INVALID, "tensor " + std::to_string(i) + ": size, shape, dtype or data");
      }
    }
    return self.session().tensors(lent) > 0 ? TOCSIN_OK : TOCSIN_NOT_DUE;
  });
}

int32_t tocsin_statistics(tocsin_client* handle, const tocsin_row* rows, size_t count) {
  static_assert(sizeof(tocsin_row) == sizeof(core::SummaryRow));
  return with(handle, [&](hook::Client& self) -> std::int32_t {
    if (rows == nullptr && count > 0) return fail(TOCSIN_INVALID, "no rows");
    std::vector<core::SummaryRow> copied(count);
    if (count > 0) std::memcpy(static_cast<void*>(copied.data()), rows, count * sizeof *rows);
    self.session().statistics(copied);
    return TOCSIN_OK;
  });
}

int32_t tocsin_scalars(tocsin_client* handle, const uint64_t* ids, const double* values,
                       size_t count) {
  return with(handle, [&](hook::Client& self) -> std::int32_t {
    if ((ids == nullptr || values == nullptr) && count > 0)
      return fail(TOCSIN_INVALID, "no values");
    self.session().scalars({ids, count}, {values, count});
    return TOCSIN_OK;
  });
}

int32_t tocsin_span(tocsin_client* handle, uint64_t name, uint64_t track, int64_t start,
                    int64_t duration, uint64_t args) {
  return with(handle, [&](hook::Client& self) -> std::int32_t {
    if (duration < -1) return fail(TOCSIN_INVALID, "a span cannot end before it starts");
    self.session().span(name, track, start, duration, args);
    return TOCSIN_OK;
  });
}

int32_t tocsin_step_end(tocsin_client* handle, uint32_t flags) {
  return with(handle, [&](hook::Client& self) -> std::int32_t {
    self.session().step_end((flags & TOCSIN_STEP_OPTIMIZER_SKIPPED) != 0,
                            std::max<std::uint32_t>(flags >> 16, 1));
    return TOCSIN_OK;
  });
}

int32_t tocsin_step_next(tocsin_client* handle, uint32_t flags, const tocsin_scalar* scalars,
                         size_t scalar_count, const tocsin_time* times, size_t time_count) {
  static_assert(sizeof(tocsin_scalar) == sizeof(hook::ScalarValue));
  static_assert(sizeof(tocsin_time) == sizeof(hook::PhaseTime));
  return with(handle, [&](hook::Client& self) -> std::int32_t {
    if (scalars == nullptr && scalar_count > 0) return fail(TOCSIN_INVALID, "no values");
    if (times == nullptr && time_count > 0) return fail(TOCSIN_INVALID, "no times");
    const auto* values = reinterpret_cast<const hook::ScalarValue*>(scalars);
    const auto* spans = reinterpret_cast<const hook::PhaseTime*>(times);
    const bool ask = self.session().step_next({values, scalar_count}, {spans, time_count},
                                              (flags & TOCSIN_STEP_OPTIMIZER_SKIPPED) != 0,
                                              std::max<std::uint32_t>(flags >> 16, 1));
    return ask ? TOCSIN_OK : TOCSIN_NOT_DUE;
  });
}

int32_t tocsin_stop_requested(tocsin_client* handle) { return tocsin_stop_requested_at(handle, 0); }

int32_t tocsin_stop_requested_at(tocsin_client* handle, uint32_t ahead) {
  if (!hook::is_ours(handle)) return 0;
  return std::max(
      with(handle,
           [&](hook::Client& self) -> std::int32_t {
             return self.commands().ask(self.session().train_step() + std::int64_t{ahead});
           }),
      0);
}

int32_t tocsin_reduce(const tocsin_tensor* tensor, double out[13], int32_t tier) {
  return guarded([&]() -> std::int32_t {
    hook::LentTensor lent;
    if (tensor == nullptr || out == nullptr || tier != 0 || !lend(*tensor, lent) ||
        !known_dtype(tensor->dtype)) {
      return fail(TOCSIN_INVALID, "tocsin_reduce: a tensor, 13 places and tier 0");
    }
    std::uint64_t count = 1;
    for (const std::int64_t extent : lent.shape) count *= static_cast<std::uint64_t>(extent);
    const core::SummaryRow row =
        lent.strides.empty()
            ? tocsin::collectors::reduce(lent.dtype, lent.data, count)
            : tocsin::collectors::reduce_strided(lent.dtype, lent.data, lent.shape, lent.strides);
    const double columns[13] = {static_cast<double>(row.count),
                                row.sum,
                                row.sumsq,
                                row.m2,
                                row.abs_sum,
                                row.min,
                                row.max,
                                static_cast<double>(row.nan),
                                static_cast<double>(row.posinf),
                                static_cast<double>(row.neginf),
                                static_cast<double>(row.zero),
                                static_cast<double>(row.negative),
                                static_cast<double>(row.meta)};
    std::copy(std::begin(columns), std::end(columns), out);
    return TOCSIN_OK;
  });
}

}  // extern "C"
