package metric

import "github.com/loadgen/loadgen/internal/result/run"

// deviceFigures lists the figures of the block devices below log files.
func deviceFigures() []Of[run.Phase] {
	of := within(func(p *run.Phase) *run.Device { return p.Device })
	return []Of[run.Phase]{
		{
			Name: "device.bytes", Unit: "bytes", Float: of(func(d *run.Device) *float64 { return d.Bytes }),
			Says: "bytes written by any program; null with the reason if they are not known, or if others wrote much just before (docs/logs.md)",
		},
		{
			Name: "device.flushes", Unit: "flushes", Float: of(func(d *run.Device) *float64 { return d.Flushes }),
			Says: "flushes of the write cache of the whole disk, for any program",
		},
		{
			Name: "device.bytes_per_op", Unit: "bytes", Kind: Share, Float: of(func(d *run.Device) *float64 { return d.BytesPerOp }),
			Says: "bytes per op that changed something and ended ok",
		},
		{
			Name: "device.flushes_per_op", Unit: "flushes", Kind: Share, Float: of(func(d *run.Device) *float64 { return d.FlushesPerOp }),
			Says: "flushes per op that changed something and ended ok",
		},
		{
			Name: "device.amplification", Unit: "bytes", Kind: Share, Float: of(func(d *run.Device) *float64 { return d.Amplification }),
			Says: "`bytes` for each byte of acknowledged entries",
		},
	}
}
