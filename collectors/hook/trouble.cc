#include "collectors/hook/trouble.h"

#include <utility>

#include "core/json.h"

namespace tocsin::hook {

void Trouble::write(core::Level level, std::string_view event,
                    std::initializer_list<core::Field> fields) {
  if (level != core::Level::warn && level != core::Level::error) return;
  std::string text(event);
  for (const auto& [name, value] : fields) {
    text += " " + std::string(name) + "=" + core::to_json(value);
  }
  set(std::move(text));
}

void Trouble::set(std::string text) {
  ++count_;
  const core::MutexLock lock(mutex_);
  text_ = std::move(text);
}

void Trouble::clear() {
  const core::MutexLock lock(mutex_);
  text_.clear();
}

std::string Trouble::text() const {
  const core::MutexLock lock(mutex_);
  return text_;
}

}  // namespace tocsin::hook
