// Which silences may be, may begin, and what may be changed of one. The router, whoever shows silences
// and whoever writes them ask the same functions, so that all read the same log alike.
#pragma once

#include <cstddef>

#include "core/result.h"
#include "core/time.h"
#include "routing/suppress/silence.h"

namespace tocsin::routing {

/// invalid_argument: a set of matchers that does not parse, or whose matchers all hold where their
/// label is missing; an end that is not after the begin; a recurrence that is none.
core::Status check(const Silence& silence);

/// What a person asks for at `now`, beside `known` silences. invalid_argument: an end in the past, no
/// comment, too large; unless `force`: longer than kMaxSilenceDuration, or a set of nothing but negative
/// matchers. failed_precondition: there are too many.
core::Status check_asked(const Silence& silence, std::size_t known, core::WallTime now, bool force);

/// May the end, the comment and the like be changed, or is `asked` another silence? Of one that is in
/// force the begin and whom it silences stay; of one that is over everything does.
[[nodiscard]] bool same_silence(const Silence& old, const Silence& asked, core::WallTime now);

/// The silence that stands after the record `next` came; `old`: the one before it, null: none.
/// failed_precondition: `next` follows from another version, or changes what may not be changed; then
/// `old` stands.
core::Result<Silence> follow(const Silence* old, Silence next);

}  // namespace tocsin::routing
