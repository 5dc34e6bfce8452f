#include "domain/message.h"

#include "base/check.h"

namespace interlock::domain {

std::string_view Name(AddressKind kind) {
  switch (kind) {
    case AddressKind::kTo:
      return "to";
    case AddressKind::kCc:
      return "cc";
    case AddressKind::kBcc:
      return "bcc";
  }
  IL_CHECK(false);
}

}  // namespace interlock::domain
