#include "http/routes.h"

#include <array>

#include "http/health.h"

namespace interlock::http {
namespace {

constexpr std::array kRoutes = {
    Route{Method::kGet, "/health", GetHealth, "Is the server fit to serve? Needs no key."},
};

}  // namespace

std::span<const Route> Routes() { return kRoutes; }

}  // namespace interlock::http
