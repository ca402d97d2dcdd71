// Package push sends what a registry shows to a receiver of Prometheus' remote write protocol, so that a scrape cannot miss a short run.
//
// It speaks version 1 of the protocol, which also old receivers take: https://prometheus.io/docs/specs/prw/remote_write_spec. Requests and retries are
// client_golang's, and the message is encoded here, since client_golang has only that of version 2. Counters and gauges are sent as
// samples, and histograms as native ones, without classic buckets.
//
// A failed push is not repeated: series are cumulative, so the next one that arrives includes the counts of the lost one, at a later time.
package push
