// Why a commit did not come about.
#pragma once

#include <librdkafka/rdkafka.h>

#include <string>
#include <string_view>

#include "core/result.h"

namespace tocsin::ingest {

inline core::Error too_late(std::string_view doing) {
  return {core::Code::deadline_exceeded, std::string(doing) + ": no answer in time"};
}

inline core::Error not_a_member() {
  return {core::Code::failed_precondition, "the source left its group: its positions are not ours"};
}

inline core::Error must_repeat() {
  return core::internal_error(
      "the last commit has no answer yet: it must be repeated with the same records, or with more "
      "behind them");
}

inline core::Error in_doubt() {
  return {core::Code::failed_precondition,
          "the producer was lost in a commit: only what stands in the topics tells what became of "
          "it"};
}

/// Another producer of the same transactional id has taken over.
inline bool is_fencing(rd_kafka_resp_err_t code) {
  return code == RD_KAFKA_RESP_ERR__FENCED || code == RD_KAFKA_RESP_ERR_PRODUCER_FENCED ||
         code == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH;
}

}  // namespace tocsin::ingest
