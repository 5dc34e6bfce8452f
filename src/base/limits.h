#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace interlock {

// Every bound of the server in one place. What is full refuses at once and says when to come back;
// nothing queues without end. Tests shorten the times; `intermute serve --help` names those that a
// person may want to change.
struct Limits {
  // A request. 16 KiB of header hold any client we know; a body is a message, not a file.
  std::size_t header_bytes_max = std::size_t{16} * 1024;
  std::size_t body_bytes_max = std::size_t{1024} * 1024;

  // Answers that peers have not taken yet, all together. Beyond that a large one becomes a 503.
  std::size_t unsent_bytes_max = std::size_t{256} * 1024 * 1024;
  std::size_t small_answer_bytes = std::size_t{64} * 1024;

  // Connections served at once, and refused ones that may at the same time be told why; as many may
  // besides be on their way out. Beyond all, a connection is closed without a word.
  std::size_t connections_max = 1024;
  std::size_t refusals_max = 64;

  // How long a peer may take: between requests, from a request's first byte to the end of its
  // header, for its body, and to read our answer.
  std::chrono::milliseconds idle_timeout{60'000};
  std::chrono::milliseconds header_timeout{10'000};
  std::chrono::milliseconds body_timeout{30'000};
  std::chrono::milliseconds write_timeout{30'000};

  // After a final answer to a peer that may still be sending, its bytes are read and dropped this
  // long and this far: closing at once would reset the connection and lose the answer.
  std::chrono::milliseconds linger_timeout{2'000};
  std::size_t linger_bytes_max = std::size_t{4} * 1024 * 1024;

  // How long a stopping server waits for the requests it has begun.
  std::chrono::milliseconds drain_timeout{5'000};

  // WebSocket. The largest message a peer may send, and how long it may be silent before it is
  // asked whether it is alive; after as much silence again it is dropped.
  std::size_t ws_message_bytes_max = std::size_t{32} * 1024;
  std::chrono::milliseconds ws_ping_interval{25'000};

  // Storage. What may wait for the writer and for the readers, how many writes share one commit,
  // how many reads run at once, and how long a request's storage may take in all.
  std::size_t write_queue_max = 4096;
  std::size_t read_queue_max = 4096;
  std::size_t batch_max = 256;
  std::size_t readers = 4;
  std::chrono::milliseconds storage_timeout{10'000};

  // Mail. Addresses that one message may name, to, cc and bcc together: each costs the one writer
  // some 10 µs, which everybody waits for. A broadcast names nobody and reaches all. How often an
  // agent may broadcast in a project.
  std::size_t addresses_max = 1000;
  // The messages of one page, however many are asked for: what a client that does not read may make
  // us hold.
  std::size_t page_bytes_max = std::size_t{16} * 1024 * 1024;
  // An id, an address, a thread, a topic: each is a key of several tables, and part of every event.
  std::size_t mail_name_bytes_max = 256;
  std::int64_t broadcasts_max = 10;
  std::chrono::seconds broadcast_window{60};

  // What an agent may say of itself: its name and status, each capability, metadata as a whole
  // (keys and values), and how many of each. 32 KiB hold the paths of several hundred files.
  std::size_t agent_text_bytes_max = 256;
  std::size_t capabilities_max = 256;
  std::size_t capability_bytes_max = 256;
  std::size_t capabilities_wanted_max = 64;  // by one list
  std::size_t metadata_entries_max = 256;
  std::size_t metadata_bytes_max = std::size_t{32} * 1024;

  // Names that clients choose for others: the id of an agent that nobody registered, a project.
  std::size_t agent_id_bytes_max = 256;
  std::size_t project_bytes_max = 256;

  // Agents that one list shows, and contacts of one agent.
  std::size_t agents_listed_max = 10'000;
  std::size_t contacts_max = 1'000;

  // What may wait for one consumer of events; one that is slower is ended, and may resume. And how
  // many types of events its filter may name.
  std::size_t outbox_events_max = 1024;
  std::size_t outbox_bytes_max = std::size_t{1024} * 1024;
  std::size_t event_types_max = 64;
  // Reads of the log at a time for those who catch up, however many; the other readers are left to
  // everybody else, so it stays below `readers`.
  std::size_t replays_max = 2;

  // Reservations. How long a request may wait for its turn, how many requests may do so, patterns
  // of one request, and reservations that one list shows.
  std::int64_t wait_seconds_max = 25;
  std::size_t waiters_max = 1024;
  std::size_t patterns_max = 64;
  std::size_t reason_bytes_max = 4096;
  std::int64_t reservations_listed_max = 10'000;

  // Planning: the JSON of one entity, the names that it is found by (its id, what filters look for,
  // the feature of a link), and how many one page lists.
  std::size_t plan_bytes_max = std::size_t{256} * 1024;
  std::size_t plan_name_bytes_max = 256;
  std::int64_t plans_listed_max = 1'000;

  // Windows that one list shows; messages that wait to be surfaced, of one answer, and roughly how
  // long they may be together; how often one agent may speak to another at once; and what may wait
  // for tmux.
  std::int64_t windows_listed_max = 10'000;
  std::int64_t pokes_listed_max = 100;
  std::size_t pokes_bytes_max = std::size_t{1024} * 1024;
  std::int64_t pokes_max = 10;
  std::chrono::seconds pokes_window{60};
  std::size_t tmux_queue_max = 256;

  // What the storage may take to show that it is alive.
  std::chrono::milliseconds ping_timeout{500};
};

}  // namespace interlock
