#include "core/notification.h"

#include <array>
#include <optional>

namespace tocsin::core {
namespace {

constexpr std::array<std::string_view, 4> kKinds{"open", "update", "close", "repeat"};
constexpr std::array<std::string_view, 8> kStates{
    "pending", "delivered", "delivered_via_digest", "sent_unconfirmed", "superseded", "expired",
    "dead",    "cancelled"};
constexpr std::array<std::string_view, 7> kOutcomes{
    "delivered", "transient", "throttled", "configuration", "gone", "bad_payload", "unknown"};

template <typename E, std::size_t N>
std::optional<E> find(const std::array<std::string_view, N>& names, std::string_view wanted) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == wanted) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(NotificationKind kind) noexcept {
  return kKinds[static_cast<std::size_t>(kind)];
}
std::optional<NotificationKind> notification_kind_from(std::string_view name) noexcept {
  return find<NotificationKind>(kKinds, name);
}
std::string_view to_string(DeliveryState state) noexcept {
  return kStates[static_cast<std::size_t>(state)];
}
std::optional<DeliveryState> delivery_state_from(std::string_view name) noexcept {
  return find<DeliveryState>(kStates, name);
}
std::string_view to_string(OutcomeClass outcome) noexcept {
  return kOutcomes[static_cast<std::size_t>(outcome)];
}

}  // namespace tocsin::core
