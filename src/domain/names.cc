#include "domain/names.h"

#include <array>
#include <string_view>

namespace interlock::domain {
namespace {

constexpr auto kAdjectives = std::to_array<std::string_view>({
    "Agile",    "Amber",    "Ample",    "Ardent",  "Autumn",   "Azure",   "Bold",    "Brave",
    "Breezy",   "Bright",   "Brisk",    "Bronze",  "Calm",     "Candid",  "Careful", "Cheery",
    "Clear",    "Clever",   "Coastal",  "Copper",  "Coral",    "Cosmic",  "Crimson", "Crisp",
    "Curious",  "Daring",   "Deft",     "Distant", "Eager",    "Early",   "Earnest", "Easy",
    "Fabled",   "Fair",     "Festive",  "Fleet",   "Fluent",   "Frosty",  "Gentle",  "Gilded",
    "Glad",     "Golden",   "Graceful", "Hardy",   "Hazel",    "Hidden",  "Honest",  "Humble",
    "Indigo",   "Ivory",    "Jolly",    "Keen",    "Kind",     "Lively",  "Loyal",   "Lucid",
    "Lucky",    "Lunar",    "Mellow",   "Merry",   "Mighty",   "Mindful", "Modest",  "Nimble",
    "Noble",    "Northern", "Patient",  "Placid",  "Polished", "Prompt",  "Proud",   "Quick",
    "Quiet",    "Ready",    "Rustic",   "Sage",    "Scarlet",  "Serene",  "Silver",  "Solar",
    "Spry",     "Stable",   "Steady",   "Sturdy",  "Subtle",   "Sunny",   "Swift",   "Tidal",
    "Tranquil", "True",     "Upbeat",   "Velvet",  "Vivid",    "Wise",    "Witty",   "Zesty",
});

constexpr auto kNouns = std::to_array<std::string_view>({
    "Anchor",  "Arrow",  "Aspen",   "Badger",  "Beacon",  "Birch",   "Bison",   "Breeze",
    "Bridge",  "Brook",  "Canyon",  "Cedar",   "Cinder",  "Cliff",   "Clover",  "Comet",
    "Compass", "Condor", "Coyote",  "Crane",   "Creek",   "Cypress", "Delta",   "Dolphin",
    "Dune",    "Eagle",  "Ember",   "Falcon",  "Fern",    "Finch",   "Fjord",   "Forge",
    "Fox",     "Gale",   "Garnet",  "Glacier", "Glade",   "Grove",   "Harbor",  "Hare",
    "Hawk",    "Heron",  "Hollow",  "Ibis",    "Island",  "Jackdaw", "Jasper",  "Juniper",
    "Kestrel", "Lagoon", "Lantern", "Lark",    "Laurel",  "Lynx",    "Maple",   "Marten",
    "Meadow",  "Meteor", "Moose",   "Nebula",  "Oak",     "Orbit",   "Orchid",  "Osprey",
    "Otter",   "Owl",    "Panther", "Pebble",  "Pine",    "Plover",  "Prairie", "Quartz",
    "Raven",   "Reef",   "Ridge",   "River",   "Robin",   "Rowan",   "Sail",    "Sparrow",
    "Spruce",  "Summit", "Swallow", "Tern",    "Thicket", "Thistle", "Tide",    "Timber",
    "Valley",  "Walnut", "Willow",  "Wolf",    "Wren",    "Yarrow",  "Zephyr",  "Zenith",
});

static_assert(kAdjectives.size() * kNouns.size() >= 4'000);

}  // namespace

const std::uint64_t kPlainNames = kAdjectives.size() * kNouns.size();

std::string GeneratedName(std::uint64_t number) {
  const std::uint64_t round = number / kPlainNames;
  const std::uint64_t pair = number % kPlainNames;
  std::string name(kAdjectives[pair / kNouns.size()]);
  name += ' ';
  name += kNouns[pair % kNouns.size()];
  if (round > 0) {
    name += ' ';
    name += std::to_string(round + 1);
  }
  return name;
}

}  // namespace interlock::domain
