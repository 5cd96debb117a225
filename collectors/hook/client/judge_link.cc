#include "collectors/hook/client/judge_link.h"

#include <dlfcn.h>

#include <cstdlib>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/json.h"
#include "core/mutex.h"
#include "core/topics.h"

namespace tocsin::hook {

struct EngineLibrary {
  decltype(&tocsin_engine_abi_version) abi_version = nullptr;
  decltype(&tocsin_engine_last_error) last_error = nullptr;
  decltype(&tocsin_engine_open) open = nullptr;
  decltype(&tocsin_engine_record) record = nullptr;
  decltype(&tocsin_engine_issues) issues = nullptr;
  decltype(&tocsin_engine_wait) wait = nullptr;
  decltype(&tocsin_engine_wake) wake = nullptr;
  decltype(&tocsin_engine_catch_up) catch_up = nullptr;
  decltype(&tocsin_engine_stats) stats = nullptr;
  decltype(&tocsin_engine_cost) cost = nullptr;
  decltype(&tocsin_engine_finish) finish = nullptr;
  decltype(&tocsin_engine_close) close = nullptr;
};

namespace {

constexpr const char* kLibrary = "libtocsin_engine.so.0";
constexpr const char* kLibraryVariable = "TOCSIN_ENGINE_LIBRARY";
constexpr std::size_t kMaxStats = 64U << 10;

// Name and value in turn, of a record that comes from the engine.
struct SentHeaders {
  const char* const* texts;
  std::size_t count;

  static std::optional<std::string_view> find(const void* native, std::string_view name) {
    const auto& self = *static_cast<const SentHeaders*>(native);
    for (std::size_t i = 0; i < self.count; ++i) {
      if (name == self.texts[2 * i]) return self.texts[2 * i + 1];
    }
    return std::nullopt;
  }
};

// Beside the library that this code is part of.
std::string beside_us() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&beside_us), &info) == 0 || info.dli_fname == nullptr) {
    return {};
  }
  const std::string own = info.dli_fname;
  const std::size_t slash = own.rfind('/');
  return slash == std::string::npos ? std::string() : own.substr(0, slash + 1) + kLibrary;
}

// False: one is missing.
bool find_functions(void* handle, EngineLibrary& out) {
  bool complete = true;
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(handle, name));
    complete = complete && function != nullptr;
  };
  find("tocsin_engine_abi_version", out.abi_version);
  find("tocsin_engine_last_error", out.last_error);
  find("tocsin_engine_open", out.open);
  find("tocsin_engine_record", out.record);
  find("tocsin_engine_issues", out.issues);
  find("tocsin_engine_wait", out.wait);
  find("tocsin_engine_wake", out.wake);
  find("tocsin_engine_catch_up", out.catch_up);
  find("tocsin_engine_stats", out.stats);
  find("tocsin_engine_cost", out.cost);
  find("tocsin_engine_finish", out.finish);
  find("tocsin_engine_close", out.close);
  return complete;
}

core::Result<const EngineLibrary*> load() {
  const char* given = std::getenv(kLibraryVariable);
  void* handle = nullptr;
  std::string why;
  const auto attempt = [&](const std::string& path) {
    if (handle != nullptr || path.empty()) return;
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) why += (why.empty() ? "" : "; ") + std::string(dlerror());
  };
  if (given != nullptr && *given != '\0') {
    attempt(given);  // the user's word is final
  } else {
    attempt(beside_us());
    attempt(kLibrary);
  }
  if (handle == nullptr) {
    return core::Error{core::Code::not_found,
                       "rules in this process need " + std::string(kLibrary) + ": " + why};
  }
  auto out = std::make_unique<EngineLibrary>();
  const bool whole = find_functions(handle, *out);
  if (!whole || out->abi_version() != TOCSIN_ENGINE_ABI_VERSION) {
    return core::Error{core::Code::failed_precondition,
                       std::string(kLibrary) + " is of another version"};
  }
  return static_cast<const EngineLibrary*>(out.release());  // for the process's life
}

// A library that could not be loaded is looked for again at the next watch.
core::Result<const EngineLibrary*> library() {
  static core::Mutex mutex;
  static const EngineLibrary* loaded GUARDED_BY(mutex) = nullptr;
  const core::MutexLock lock(mutex);
  if (loaded == nullptr) {
    auto found = load();
    if (!found) return found;
    loaded = *found;
  }
  return loaded;
}

}  // namespace

JudgeLink::JudgeLink(const EngineLibrary& library, TakeCommand take)
    : library_(library), take_(std::move(take)) {}

core::Result<std::unique_ptr<JudgeLink>> JudgeLink::open(const std::string& rules,
                                                         const std::string& stop,
                                                         TakeCommand take) {
  const auto found = library();
  if (!found) return found.error();
  std::unique_ptr<JudgeLink> out(new JudgeLink(**found, std::move(take)));
  tocsin_engine_options options{};
  options.size = sizeof options;
  options.rules = rules.c_str();
  options.stop = stop.c_str();
  options.command = &JudgeLink::on_command;
  options.context = out.get();
  if ((*found)->open(&options, &out->engine_) < 0) {
    return core::invalid_argument((*found)->last_error());
  }
  return out;
}

JudgeLink::~JudgeLink() {
  if (engine_ != nullptr) library_.close(engine_);
}

void JudgeLink::on_command(void* self, const char* key, std::size_t key_length, const char* value,
                           std::size_t value_length, const char* const* headers,
                           std::size_t count) noexcept {
  try {
    const SentHeaders known{headers, count};
    core::RecordView record;
    record.topic = core::topic::kCommands;
    record.stream = core::topic::kCommands;
    record.key = std::string_view(key, key_length);
    record.value = std::as_bytes(std::span(value, value_length));
    record.tombstone = value_length == 0;
    record.native = &known;
    record.find_header = &SentHeaders::find;
    static_cast<JudgeLink*>(self)->take_(record);
  } catch (...) {  // what cannot be obeyed is not; training goes on
  }
}

void JudgeLink::offer(const core::OutRecord& record, core::WallTime now) noexcept {
  if (record.topic != core::topic::kTelemetry || !record.value) return;
  const std::int64_t time = record.timestamp != 0 ? record.timestamp : core::nanoseconds(now);
  (void)library_.record(engine_, record.key.data(), record.key.size(), record.value->data(),
                        record.value->size(), time);  // dropped: counted there
}

core::Duration JudgeLink::take_cost() {
  const std::int64_t spent = library_.cost(engine_);
  return core::Duration(spent - charged_.exchange(spent));
}

std::string JudgeLink::issues(std::uint64_t since) const {
  std::string out(16U << 10, '\0');
  while (true) {
    std::size_t length = 0;
    const std::int32_t result = library_.issues(engine_, since, out.data(), out.size(), &length);
    if (result == TOCSIN_ENGINE_OK) return out.substr(0, length);
    if (result != TOCSIN_ENGINE_TOO_SMALL) return "[]";
    out.resize(length + 1);
  }
}

bool JudgeLink::wait(std::uint64_t seen, std::chrono::milliseconds timeout) const {
  return library_.wait(engine_, seen, static_cast<std::uint32_t>(timeout.count())) ==
         TOCSIN_ENGINE_OK;
}

void JudgeLink::wake() const { (void)library_.wake(engine_); }

bool JudgeLink::catch_up(std::chrono::milliseconds timeout) const {
  return library_.catch_up(engine_, static_cast<std::uint32_t>(timeout.count())) ==
         TOCSIN_ENGINE_OK;
}

bool JudgeLink::finish(std::chrono::milliseconds timeout) {
  return library_.finish(engine_, static_cast<std::uint32_t>(timeout.count())) == TOCSIN_ENGINE_OK;
}

core::Value JudgeLink::stats() const {
  std::string text(kMaxStats, '\0');
  std::size_t length = 0;
  if (library_.stats(engine_, text.data(), text.size(), &length) != TOCSIN_ENGINE_OK) return {};
  auto parsed = core::parse_json(std::string_view(text).substr(0, length), kMaxStats);
  return parsed ? *parsed : core::Value();
}

}  // namespace tocsin::hook
