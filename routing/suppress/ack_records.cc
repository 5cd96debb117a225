#include "routing/suppress/ack_records.h"

#include <string>
#include <utility>

namespace tocsin::routing {

core::Status AckRecords::apply(std::string_view id, std::optional<std::string_view> value,
                               core::WallTime now) {
  const std::string key(id);
  if (!value) {
    acks_.withdraw(key, now);
    return core::ok();
  }
  auto ack = read_ack(*value);
  if (!ack) return ack.error();
  if (ack->id != id) return core::invalid_argument("its id is not that of its key");
  AckTarget target{std::move(ack->issues), std::move(ack->group), std::move(ack->run)};
  return acks_.take_on(key, {std::move(ack->by), std::move(ack->note), ack->at, ack->until},
                       std::move(ack->origin), std::move(target), now);
}

}  // namespace tocsin::routing
