#include "actions/contract/delivery_marks.h"

#include "actions/contract/message_fault.h"

namespace tocsin::actions {

std::string_view replay_of(const core::Delivery& delivery) {
  return value_of(delivery.handles, kept::kReplay);
}

std::vector<std::string> recipients_owed(const core::Delivery& delivery) {
  std::vector<std::string> out = values_of(delivery.handles, kept::kPutOff);
  for (std::string& one : out) one.resize(one.find(' ') == one.npos ? one.size() : one.find(' '));
  return out;
}

std::string_view notification_of(const core::Delivery& delivery) {
  const std::string_view id = delivery.notification_id;
  return id.substr(0, id.find('/'));
}

}  // namespace tocsin::actions
