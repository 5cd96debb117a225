// Names that the training thread registers, made to fit.
#include <string>

#include "collectors/hook/publish/session.h"
#include "core/limits.h"
#include "core/mutex.h"

namespace tocsin::hook {

// What every reader takes (core/limits.h); the arguments of a span are JSON, and have limits of their own.
std::string Session::fitting(std::string_view text, std::size_t most) {
  std::string name(text);
  if (core::bound_name(name, most)) ++cut_names_;
  return name;
}

std::uint64_t Session::name(std::string_view text, const NameInfo& info) {
  const core::MutexLock lock(mutex_);
  if (info.type == core::DictionaryType::tensor) capture_.forget_due();
  if (info.type == core::DictionaryType::span_args) return names_.put(text, info, capture_.plan());
  const std::string name = fitting(text, core::limit::kNameBytes);
  if (info.collection.size() <= core::limit::kHostBytes) {
    return names_.put(name, info, capture_.plan());
  }
  NameInfo known = info;
  known.collection = fitting(info.collection, core::limit::kHostBytes);
  return names_.put(name, known, capture_.plan());
}

std::uint64_t Session::collection(std::string_view name) {
  const core::MutexLock lock(mutex_);
  return capture_.collection(fitting(name, core::limit::kHostBytes));
}

}  // namespace tocsin::hook
