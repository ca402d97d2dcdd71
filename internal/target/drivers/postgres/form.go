package postgres

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
)

var _ form.Former = Driver{}

// Form is an op as a plan words it for a postgres target.
type Form struct {
	Request Request `hcl:"request,block" json:"request"`
	Expect  *Expect `hcl:"expect,block" json:"expect"`
	// Capture says what is kept of the first row, by name: "column NAME".
	Capture map[string]string `hcl:"capture,optional" json:"capture,omitempty"`
}

// Request is a statement.
type Request struct {
	// SQL is one statement, with $1, $2 … for its parameters. Nothing is inserted into its text.
	SQL string `hcl:"sql,optional" json:"sql"`
	// Parameters may have placeholders. They are sent as text, which the server reads as the parameter's type.
	Parameters []string `hcl:"parameters,optional" json:"parameters"`
	// Form is "requests" if the key is the request, from a trace of whole requests. SQL and Parameters are empty then.
	Form string `hcl:"form,optional" json:"form,omitempty"`
}

const requests = "requests" // loadgen trace import writes such traces

// Expect says what an answer means.
type Expect struct {
	// None is the outcome if no row was found or changed: "miss", "ok" or "error".
	None string `hcl:"none,optional" json:"none"`
}

const (
	mostParameters = 256
	mostSQL        = 64 << 10
	mostShown      = 60 // bytes of a parameter shown to people
)

// outcomes maps the words of Expect.
var outcomes = map[string]driver.Outcome{"": driver.Miss, "miss": driver.Miss, "ok": driver.OK, "error": driver.Error}

// refused are statements that are not one request with one answer, or that change the connection for everybody who shares it.
var refused = map[string]string{
	"BEGIN": transacts, "START": transacts, "COMMIT": transacts, "END": transacts, "ROLLBACK": transacts, "ABORT": transacts, "SAVEPOINT": transacts, "RELEASE": transacts,
	"COPY": streams, "LISTEN": connects, "UNLISTEN": connects, "SET": connects, "RESET": connects, "DISCARD": connects, "PREPARE": connects, "DEALLOCATE": connects,
	"EXECUTE": connects, "DECLARE": connects, "FETCH": connects, "CLOSE": connects, "LOCK": transacts,
}

const (
	transacts = "whose transaction would take in other requests on the connection: each request is a transaction of its own; write one statement (WITH … joins several), or call a function"
	streams   = "which is not a request with one answer: write INSERT or SELECT"
	connects  = "which changes the connection for all ops on it: write settings in the target's url, such as ?options=-c%20work_mem%3D64MB"
)

// NewForm implements form.Former.
func (Driver) NewForm() any { return &Form{} }

// CheckForm implements form.Former.
func (Driver) CheckForm(_ any, f driver.Form) (form.Wording, error) {
	s, err := compile(f)
	if err != nil {
		return form.Wording{}, err
	}
	if s.whole {
		return form.Wording{Outcomes: []driver.Outcome{driver.OK, driver.Miss, driver.Conflict}, Keyed: true, Requests: true, Command: "REQUESTS"}, nil
	}
	w := form.Wording{Outcomes: []driver.Outcome{driver.OK, driver.Miss, driver.Conflict}, Command: strings.ToUpper(firstWords(s.sql)[0])}
	for _, p := range s.parameters {
		w.Take(p.Template)
	}
	w.Captures = slices.Sorted(maps.Keys(f.Words.(*Form).Capture))
	return w, nil
}

// ShowForm implements form.Former.
func (Driver) ShowForm(_ any, f driver.Form, sample *driver.Request, run string) string {
	s, err := compile(f)
	if err != nil {
		return err.Error()
	}
	if s.whole {
		return "the requests of the phase's trace"
	}
	text := strings.Join(strings.Fields(s.sql), " ")
	for i, p := range s.parameters {
		b := p.Append(nil, sample, run)
		size := len(b)
		text += fmt.Sprintf(", $%d = %q", i+1, b[:min(size, mostShown)])
		if size > mostShown {
			text += fmt.Sprintf("… (%d bytes)", size)
		}
	}
	return text
}

// compile reads a form.
func compile(f driver.Form) (*statement, error) {
	words, ok := f.Words.(*Form)
	if !ok {
		return nil, fmt.Errorf("postgres: form is a %T, want a *postgres.Form", f.Words)
	}
	s := &statement{verb: f.Verb, op: f.Name, name: "op" + strconv.Itoa(int(f.Verb)), sql: words.Request.SQL, result: inText}
	var errs []error
	switch r := words.Request; {
	case r.Form != "" && r.Form != requests:
		errs = append(errs, fmt.Errorf("form is %.40q: write %q, for the requests of a trace, or leave it out and write sql", r.Form, requests))
	case r.Form != "" && (r.SQL != "" || len(r.Parameters) > 0):
		errs = append(errs, errors.New("sql or parameters beside form: leave them out: the trace has the statements"))
	case r.Form != "":
		s.whole = true
	default:
		errs = append(errs, checkSQL(s.sql))
	}
	if n := len(words.Request.Parameters); n > mostParameters {
		errs = append(errs, fmt.Errorf("parameters are %d: write at most %d", n, mostParameters))
	}
	for i, text := range words.Request.Parameters {
		t, err := form.Parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("parameters[%d] is %.80q: %w", i, text, err))
		}
		s.parameters = append(s.parameters, parameter{t, inText})
	}
	captures, err := form.ParseCaptures(words.Capture, parseColumn)
	s.captures, errs = captures, append(errs, err)
	none := ""
	if words.Expect != nil {
		none = words.Expect.None
	}
	if s.none, ok = outcomes[none]; !ok {
		errs = append(errs, fmt.Errorf(`none is %.80q: write "miss", "ok" or "error"`, none))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

// firstWords returns the words of a statement without comments to the end of a line.
func firstWords(sql string) (words []string) {
	for line := range strings.Lines(sql) {
		code, _, _ := strings.Cut(line, "--")
		words = append(words, strings.FieldsFunc(code, func(r rune) bool { return r == ';' || unicode.IsSpace(r) })...)
	}
	return words
}

// checkSQL finds the errors that can be found without a server.
func checkSQL(sql string) error {
	words := firstWords(sql)
	switch {
	case len(words) == 0:
		return errors.New("sql is empty: write a statement, with $1 and on for its parameters")
	case len(sql) > mostSQL:
		return fmt.Errorf("sql has %d bytes: write at most %d", len(sql), mostSQL)
	case strings.ContainsRune(sql, 0):
		return errors.New("sql has a NUL character: leave it out")
	}
	first := strings.ToUpper(words[0])
	if why, ok := refused[first]; ok {
		return fmt.Errorf("sql is %s, %s", first, why)
	}
	pasted := []string{"{key}", "{value}", "{run}", "{n}", "{field.", "{row.", "{captured.", "{secret."}
	if i := slices.IndexFunc(pasted, func(p string) bool { return strings.Contains(sql, p) }); i >= 0 {
		return fmt.Errorf("sql has %s in its text: write $1 there, and parameters = [\"{key}\"] or another placeholder: nothing is put into a statement's text", pasted[i])
	}
	return nil
}
