// The topic of what people change, apart from core/topics.h: few write or read it.
#pragma once

namespace tocsin::core::topic {
inline constexpr const char* kRouterAudit = "router-audit";
}  // namespace tocsin::core::topic
