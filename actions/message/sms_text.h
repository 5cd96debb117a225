// Texts for SMS: what fits into two parts, whatever their alphabet. Internal to actions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/notification.h"

namespace tocsin::actions {

/// Parts that `text` (valid UTF-8) is sent as: 160 characters of GSM 7-bit or 70 of UCS-2 in one, 153 or 67
/// in each of several. A character of the extension table counts twice, one beyond U+FFFF too.
std::size_t sms_parts(std::string_view text);

/// `text` with signs that the alphabet of GSM lacks written otherwise: dashes, quotes, ellipses.
std::string sms_plain(std::string_view text);

/// Headline, finding and the id of the issue, in at most two parts, cut between two characters. The short
/// form has no finding.
std::string sms_text(const core::Notification& notification);

}  // namespace tocsin::actions
