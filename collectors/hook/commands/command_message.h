// A record of `commands` between two clients of one node. Length first, so that a reader knows when
// it has all of it; both ends are this library, or a version of it that begins the same way.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/record.h"

namespace tocsin::hook {

/// A message that only says that the sender is alive.
std::string keep_alive_message();
/// The record with the headers that an event's envelope may need.
std::string encode_command_message(const core::RecordView& record);

/// How long the message at the front of `bytes` is; 0: not known yet; nullopt: this is no message.
std::optional<std::size_t> message_size(std::string_view bytes);
/// Hands the record of one whole message to `take`; nothing for keep-alives and unknown kinds.
/// False: damaged.
bool decode_command_message(std::string_view message,
                            const std::function<void(const core::RecordView&)>& take);

}  // namespace tocsin::hook
