// A notification as a record of the outbox: a line of JSON with its head and the listing of its
// issues, a line with the issues themselves, and behind it the rendered message as it is. So each
// is written once, and delivery reads no more than it needs.
#pragma once

#include <string>
#include <string_view>

#include "core/notification.h"
#include "core/result.h"

namespace tocsin::core {

std::string write_outbox(const Notification& notification);
/// Its issues stay packed. Also reads records of one JSON object, as they once were.
/// invalid_argument: what is wrong, and where.
Result<Notification> read_outbox(std::string_view record);
/// Reads the issues, once. invalid_argument: what is wrong with them; they stay packed.
Status unpack(Notification& notification);

}  // namespace tocsin::core
