#pragma once

#include <string_view>

#include "domain/mailbox.h"

namespace interlock::testing {

// For tests and measurements of writing mail, which nobody reads by way of the services.
class DeafListener : public domain::DeliveryListener {
 public:
  void Delivered(std::string_view /*project*/, std::string_view /*agent*/,
                 domain::Cursor /*cursor*/) override {}
};

}  // namespace interlock::testing
