// Package workload says what: a stream → its seeded ops, with verb, key and value.
//
// It is pure. The ops of a stream are a function of the plan, the phase, the step and the stream's number alone, so their
// multiset over all streams is the same whatever the number of workers or event loops and whatever the order streams are driven
// in. Nothing is allocated per op.
//
// # Streams
//
// A load has one stream per session when closed and [plan.Schedule].Streams otherwise; setup, populate and clear have one per session.
// Stream i belongs to session i mod sessions.
//
// # Random numbers
//
// A stream draws from a PCG-DXSM generator seeded by a hash of plan seed, phase name, kind, level from the second on and stream
// number (see seedOf and generator). For each op it draws, in this order,
//
//  1. the verb, when there is a choice: one word;
//  2. the key, when it is picked at random: as many words as rejection takes, usually one;
//  3. whether it asks for a key that nobody puts, for a get of a phase with a hit ratio below 1: one word;
//  4. the value's seed, for a put: one word. Of a file's values it chooses one; where values belong to their keys, the key's index is the seed.
//
// # Keys
//
// A key is its number in the dataset's format, or the key of a file with that number, from 0: then the file, which the plan names by its SHA-256, is part
// of what ops are a function of. Numbers depend on plan seed, dataset and session, never on the phase, so that what
// one phase put another one gets.
//
//   - shared: the picked index itself, in [0, count).
//   - session: (base + session·count + index) mod 10¹², base a hash of plan seed and dataset in the upper half of that range. The
//     pools of one dataset lie side by side and never meet. Those of two datasets meet with a probability of about (their keys
//     together) / 5·10¹¹, and a shared range of up to 5·10¹¹ keys only with pools that wrapped round.
//
// The index is picked
//
//   - uniform: an unbiased integer;
//   - zipf(s): a rank with probability ∝ rank⁻ˢ, spread over the range by a permutation that plan seed and dataset fix;
//   - zipf(0.99, ycsb): as YCSB's ScrambledZipfianGenerator does, see ycsbRank and ycsbIndex;
//   - hotspot(o on k): with probability o one of the ⌊k·count⌉ hot keys, each as likely, else one of the others; hot keys are spread by
//     the same permutation;
//   - latest(s): a put takes a new key, which is above [0, count) and of the stream alone; any other op a key by its rank from the newest
//     with probability ∝ rank⁻ˢ, over the keys of [0, count) and all that the stream has put (see growth and newest);
//   - sequence: part i of S of [0, count), which is [⌊count·i/S⌋, ⌊count·(i+1)/S⌋), in order, once. The parts are taken by the
//     streams, of a session's pool by the streams of that session.
//
// Setup walks each session's pool, in order; populate the shared range, divided over its streams as a sequence; clear the shared
// range likewise, or all the pools that a load of the plan uses, end to end as one range, whatever the number of its own sessions.
package workload
