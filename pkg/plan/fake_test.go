package plan_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// fakeConfig has one attribute of each kind that drivers have.
type fakeConfig struct {
	Password *driver.Secret `hcl:"password,optional" json:"password"`
	Database int            `hcl:"database,optional" json:"database"`
	Delay    time.Duration  `hcl:"delay,optional" json:"delay_ns"`
	Prefix   string         `hcl:"prefix,optional" json:"prefix"`
	Cluster  bool           `hcl:"cluster,optional" json:"cluster"`
	Proxy    *fakeProxy     `hcl:"proxy,block" json:"proxy"`
}

type fakeProxy struct {
	Name string `hcl:"name" json:"name"`
}

func (c *fakeConfig) Validate() error {
	var errs []error
	if c.Database < 0 {
		errs = append(errs, errors.New("database is negative: write a number from 0"))
	}
	if c.Prefix == "bad" {
		errs = append(errs, errors.New(`prefix is "bad": write another`))
	}
	if c.Proxy != nil && c.Proxy.Name == "bad" {
		errs = append(errs, errors.New(`proxy with name = "bad": write another`))
	}
	return errors.Join(errs...)
}

// fakeWire is a driver with a wire and built-in nodes.
type fakeWire struct{ name, builtin string }

func (d fakeWire) Name() string    { return d.name }
func (d fakeWire) Builtin() string { return d.builtin }
func (d fakeWire) NewConfig() any  { return &fakeConfig{Delay: time.Millisecond} }

func (d fakeWire) Outcomes(v driver.Verb) []driver.Outcome {
	if v > driver.Delete || v == driver.Delete && d.builtin == "" {
		return nil
	}
	return []driver.Outcome{driver.OK, driver.Miss}
}

var _ driver.Cluster = fakeWire{}

func (fakeWire) NewCodec(driver.Link) (driver.Codec, error) {
	return nil, errors.New("not in these tests")
}

func (fakeWire) Identify(context.Context, net.Conn, driver.Link) (map[string]string, error) {
	return nil, errors.New("not in these tests")
}

func (fakeWire) Clustered(config any) bool {
	cfg, ok := config.(*fakeConfig)
	return ok && cfg.Cluster
}

func (fakeWire) Nodes(context.Context, net.Conn, driver.Link) ([]driver.Node, error) {
	return nil, errors.New("not in these tests")
}

// fakeTimed is a driver without a transport and without attributes.
type fakeTimed struct{}

func (fakeTimed) Name() string                                            { return "null" }
func (fakeTimed) NewConfig() any                                          { return new(struct{}) }
func (fakeTimed) Outcomes(driver.Verb) []driver.Outcome                   { return []driver.Outcome{driver.OK} }
func (fakeTimed) Reply(any, *driver.Request, *driver.Reply) time.Duration { return 0 }

// fakeLocal is a driver of files, which appends and, where the layout is array, writes.
type fakeLocal struct{}

var _ localfile.Driver = fakeLocal{} // or it would be taken for another kind

// fakeLog has the attributes that the plans of the repository use.
type fakeLog struct {
	Layout   string      `hcl:"layout,optional" json:"layout"`
	Sync     string      `hcl:"sync,optional" json:"sync"`
	FileSize driver.Size `hcl:"file_size,optional" json:"file_size"`
	CRC      bool        `hcl:"crc,optional" json:"crc"`
	Erase    bool        `hcl:"erase,optional" json:"erase"`
	Padding  int         `hcl:"padding,optional" json:"padding"`
}

func (fakeLocal) Name() string   { return "log" }
func (fakeLocal) NewConfig() any { return &fakeLog{Layout: "append", FileSize: 4096} }

func (fakeLocal) Outcomes(v driver.Verb) []driver.Outcome {
	if v < driver.Append {
		return nil
	}
	return []driver.Outcome{driver.OK}
}

func (fakeLocal) Check(config any, v driver.Verb) error {
	if v == driver.Write && config.(*fakeLog).Layout != "array" {
		return errors.New("there are no slots to write; write append")
	}
	return nil
}

// Need has a file of the file_size for all sessions, or slots. A channel has entries of one size.
func (fakeLocal) Need(config any, site localfile.Site) (localfile.Need, error) {
	c := config.(*fakeLog)
	if int64(site.Value.Size) > int64(c.FileSize) {
		return localfile.Need{}, errors.New("the file does not hold a value")
	}
	switch c.Layout {
	case "append":
		return localfile.Need{Logs: 1, Bytes: int64(c.FileSize)}, nil
	case "channel":
		return localfile.Need{Logs: 1, Bytes: int64(c.FileSize), Value: site.Value.Size}, nil
	}
	slots := site.Keys
	if site.Pools {
		slots *= int64(site.To - site.From)
	}
	return localfile.Need{Logs: 1, Bytes: slots * int64(site.Value.Size), Slots: slots, Value: site.Value.Size}, nil
}

func (fakeLocal) Open(context.Context, any, localfile.Site) (localfile.Store, error) {
	return nil, errors.New("not in these tests")
}

func (fakeLocal) Verify([]byte) (localfile.Proof, error) {
	return localfile.Proof{}, errors.New("not in these tests")
}

// drivers are those of all tests: redis has built-in nodes, plain has none and cannot delete, log has files, null has no transport.
func drivers() []driver.Driver {
	return []driver.Driver{fakeInformant{fakeWire{"redis", "resp"}}, fakeWire{"plain", ""}, fakeLocal{}, fakeTimed{}}
}

// CheckTTL takes whole seconds only.
func (fakeInformant) CheckTTL(ttl time.Duration) error {
	if ttl%time.Second != 0 {
		return errors.New("it counts whole seconds: write another")
	}
	return nil
}

// CheckBatch refuses puts with a TTL.
func (fakeInformant) CheckBatch(_ any, v driver.Verb, b driver.Batch) error {
	if v == driver.Put && b.TTL > 0 {
		return errors.New("several keys are put without a TTL: leave one of them out")
	}
	return nil
}

// fakeInformant is a driver whose servers tell two figures.
type fakeInformant struct{ fakeWire }

func (fakeInformant) Figures() []driver.Figure {
	return []driver.Figure{{Name: "used_memory", Unit: "bytes"}, {Name: "calls", Counter: true}}
}

func (d fakeInformant) Describe(name string) driver.Figure {
	if name == "used_memory" {
		return d.Figures()[0]
	}
	return driver.Figure{Name: name}
}

func (fakeInformant) AppendQuestion(dst []byte, _ driver.Link) ([]byte, error) { return dst, nil }

func (fakeInformant) ParseFigures([]byte) (map[string]string, int, error) {
	return nil, 0, errors.New("not in these tests")
}

// fakeForm has an attribute of each kind that forms have.
type fakeForm struct {
	Request fakeRequest `hcl:"request,block" json:"request"`
	Expect  *fakeExpect `hcl:"expect,block" json:"expect"`

	Capture map[string]string `hcl:"capture,optional" json:"capture,omitempty"`
}

type fakeRequest struct {
	Words  []string      `hcl:"words" json:"words"`
	Within time.Duration `hcl:"within,optional" json:"within_ns"`
}

type fakeExpect struct {
	Miss []string `hcl:"miss,optional" json:"miss"`
}

var _ form.Former = fakeWire{}

func (fakeWire) NewForm() any { return &fakeForm{} }

func (fakeWire) CheckForm(_ any, f driver.Form) (form.Wording, error) {
	words := f.Words.(*fakeForm).Request.Words
	var errs []error
	w := form.Wording{Outcomes: []driver.Outcome{driver.OK}}
	if len(words) == 0 {
		errs = append(errs, errors.New("words are none: write some"))
	}
	for i, text := range words {
		t, err := form.Parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("words[%d] is %q: %w", i, text, err))
		}
		w.Take(t)
	}
	w.Captures = slices.Sorted(maps.Keys(f.Words.(*fakeForm).Capture))
	return w, errors.Join(errs...)
}

func (fakeWire) ShowForm(_ any, f driver.Form, sample *driver.Request, run string) string {
	var out []string
	for _, text := range f.Words.(*fakeForm).Request.Words {
		t, _ := form.Parse(text)
		out = append(out, string(t.Append(nil, sample, run)))
	}
	return strings.Join(out, " ")
}
