// Package workload draws the ops that each stream sends, with verb, key and value, from seeds.
//
// It is pure. The ops of a stream are a function of the plan, the phase, the step and the stream's number alone. So the multiset of
// ops over all streams does not depend on the number of workers or event loops, nor on the order in which streams are driven.
// Nothing is allocated per op.
//
// # Streams
//
// A load has one stream per session when closed and [plan.Schedule].Streams otherwise; setup, populate, clear and verify have one per session.
// Stream i belongs to session i mod sessions.
//
// # Random numbers
//
// A stream draws from a PCG-DXSM generator seeded by a hash of plan seed, the repetition of a load (except the first), phase name, kind, level
// (except the first) and stream number (see seedOf and generator). So every repetition of a load draws anew, and so does every try of a search.
// Setup, populate and clear, and where keys are, do not depend on the repetition. For each op it draws, in this order,
//
//  1. the verb, if there is a choice: one word;
//  2. the key, if it is picked at random: as many words as rejection takes, usually one;
//  3. for a get in a phase with a hit ratio below 1, whether it asks for a key that is never put: one word;
//  4. for a put, the value's seed: one word. The seed chooses among a file's values. If values are paired with keys, the seed is the key's index.
//
// # Keys
//
// A key is its number in the dataset's format, or the key with that number, from 0, in a file. Ops then depend on the file, too, which the
// plan identifies by its SHA-256. Numbers depend on plan seed, dataset and session, never on the phase, so that one phase can get what
// another put.
//
//   - shared: the picked index itself, in [0, count).
//   - session: (base + session·count + index) mod 10¹², where base is a hash of plan seed and dataset in the upper half of that range. The
//     pools of one dataset are adjacent and never overlap. Those of two datasets overlap with a probability of about (total number of their
//     keys) / 5·10¹¹. A shared range of up to 5·10¹¹ keys overlaps only with pools that wrapped around.
//
// The index is picked
//
//   - uniform: an unbiased integer;
//   - zipf(s): a rank with probability ∝ rank⁻ˢ, mapped to the range by a permutation that plan seed and dataset determine;
//   - zipf(0.99, ycsb): as YCSB's ScrambledZipfianGenerator does, see ycsbRank and ycsbIndex;
//   - hotspot(o on k): with probability o one of the ⌊k·count⌉ hot keys, uniformly, else one of the others; the same permutation
//     spreads the hot keys;
//   - latest(s): a put takes a new key above [0, count) that belongs to the stream alone. Any other op picks a key by its rank from the
//     newest, with probability ∝ rank⁻ˢ, among [0, count) and all keys that the stream has put (see growth and newest);
//   - sequence: part i of S of [0, count), which is [⌊count·i/S⌋, ⌊count·(i+1)/S⌋), in order, once. Each stream takes a part of the
//     shared range, or of its session's pool, which the session's streams share.
//
// If each key has one writer, session s of S writes the keys whose index is s modulo S, in all phases: a write picks as above, and takes the key of its
// session that is nearest. A sequence, populate, clear and verify are divided likewise: stream s takes indices s, s + S, s + 2·S and so on.
//
// With [Stream.Reach], gets go only to keys that sessions of the same event loop write.
//
// Setup walks each session's pool, in order. Populate walks the shared range, divided between its streams like a sequence. Clear does the
// same, or walks all pools that the plan's loads use, as one contiguous range, whatever the number of its own sessions.
package workload
