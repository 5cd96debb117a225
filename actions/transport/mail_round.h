// One attempt to reach the recipients of a mail, and what each of them came to. Internal to actions.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "actions/contract/message_fault.h"
#include "actions/transport/mailer.h"
#include "core/action.h"
#include "core/time.h"

namespace tocsin::actions {

/// Who is to get the mail in this attempt, and who gets it otherwise.
struct Recipients {
  std::vector<std::string> now;
  std::vector<std::string> otherwise;  // they have deliveries of their own
};

/// Of `all`, by what the lane says of them in `handles` (kept::kOnlyTo, kept::kNotTo). Where all have
/// deliveries of their own, all are tried.
Recipients recipients_of(const std::vector<std::string>& all, const HandleList& handles);

/// Sends `mail` to `recipients.now` within mail.timeout. The first attempt is one transaction; in a
/// later one each recipient has its own, so that none can keep the mail from the others, and another
/// one begins each time. `now`: monotonic.
///
/// Delivered when anybody has it; who does not is named in the handles: kept::kRefused, for good, and
/// kept::kPutOff, by a delivery of its own. Nobody has it: the outcome of the failure, `held` with
/// kept::kFault "recipient" where the server is well and all recipients are put off.
core::AttemptOutcome send_round(Mailer& mailer, Mail mail, const Recipients& recipients,
                                std::uint32_t attempt, const std::function<core::Duration()>& now);

}  // namespace tocsin::actions
