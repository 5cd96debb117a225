// Texts that very many states have in common, such as the producer of their reports: each lies in
// memory once.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tocsin::routing {

class SharedText;
template <typename T>
concept TextAside = !std::same_as<T, SharedText> && std::convertible_to<const T&, std::string_view>;

/// A text that its copies share. Empty: takes no memory.
class SharedText {
 public:
  SharedText() noexcept = default;
  // Implicit on purpose: either is written where the other would be.
  // NOLINTBEGIN(google-explicit-constructor)
  SharedText(std::string_view text)
      : text_(text.empty() ? nullptr : std::make_shared<const std::string>(text)) {}
  SharedText(const std::string& text) : SharedText(std::string_view(text)) {}
  SharedText(const char* text) : SharedText(std::string_view(text)) {}
  operator std::string_view() const noexcept {
    return text_ == nullptr ? std::string_view() : *text_;
  }
  // NOLINTEND(google-explicit-constructor)
  [[nodiscard]] std::string text() const { return std::string(std::string_view(*this)); }

  friend bool operator==(const SharedText& a, const SharedText& b) noexcept {
    return a.text_ == b.text_ || std::string_view(a) == std::string_view(b);
  }
  template <TextAside T>
  friend bool operator==(const SharedText& a, const T& b) noexcept {
    return std::string_view(a) == std::string_view(b);
  }

 private:
  friend class SharedTexts;
  std::shared_ptr<const std::string> text_;
};

/// Makes equal texts one. A text goes with the last state that has it.
class SharedTexts {
 public:
  void share(SharedText& text) {
    if (text.text_ == nullptr || text.text_ == last_.text_) return;
    if (last_ == text) {
      text = last_;
      return;
    }
    share_one(text);
    last_ = text;
  }
  /// The same, of a text that is nowhere yet.
  SharedText shared(std::string_view text) {
    if (last_ == text) return last_;
    SharedText out(text);
    share(out);
    return out;
  }
  [[nodiscard]] std::size_t size() const noexcept { return known_.size(); }

 private:
  void share_one(SharedText& text) {
    const auto [found, fresh] = known_.try_emplace(*text.text_);
    if (auto known = found->second.lock()) {
      text.text_ = std::move(known);
      return;
    }
    found->second = text.text_;
    if (fresh && known_.size() > swept_at_) sweep();
  }
  void sweep() {
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
    swept_at_ = 2 * known_.size() + kFew;
  }

  static constexpr std::size_t kFew = 64;
  std::unordered_map<std::string, std::weak_ptr<const std::string>> known_;
  std::size_t swept_at_ = kFew;
  SharedText last_;  // of many states one after the other it is the same
};

}  // namespace tocsin::routing
