package postgres

import (
	"fmt"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
)

// Formats of parameters and results on the wire.
const (
	inText   = 0
	inBinary = 1
)

// Types that statements declare for their parameters: pg_type.dat in PostgreSQL's sources. 0 leaves the type to the server.
const (
	byteaOID = 17
	jsonbOID = 3802
)

// statement is what a verb's requests execute. Every connection has prepared it under its name.
type statement struct {
	verb       driver.Verb
	name       string // the statement's name on a connection
	sql        string
	parameters []parameter
	oids       []uint32
	result     byte                  // format of the result's columns
	none       driver.Outcome        // outcome if no row was found or changed
	op         string                // the plan's name for it, if the plan words it
	absent     bool                  // it is never prepared, since it needs a table and the plan wants none
	whole      bool                  // the key is the request, of whatever statements
	captures   form.Captures[string] // of columns
}

// parameter is one parameter of a statement.
type parameter struct {
	form.Template

	format byte
}

var (
	theKey   = form.Template{{Kind: form.Key}}
	theValue = form.Template{{Kind: form.Value}}
)

// statements returns the statements that a link's requests may execute: the plan's wording, and the driver's own for the rest. table is the table
// that the driver's own statements use; "" if there are no such statements, or the plan wants no table.
func statements(link driver.Link) (table string, all []*statement, err error) {
	c, err := configOf(link)
	if err != nil {
		return "", nil, err
	}
	worded := map[driver.Verb]bool{}
	for _, f := range link.Forms {
		s, err := compile(f)
		if err != nil {
			return "", nil, fmt.Errorf("op %q: %w", f.Name, err)
		}
		for i := range s.parameters {
			if s.parameters[i].Template, err = s.parameters[i].Disclosed(link.Secrets); err != nil {
				return "", nil, fmt.Errorf("op %q: %w", f.Name, err)
			}
		}
		worded[f.Verb] = true
		all = append(all, s)
	}
	for _, s := range c.own() {
		if !worded[s.verb] {
			s.absent = c.Table == ""
			all, table = append(all, s), c.Table
		}
	}
	return table, all, nil
}

// own returns the statements on the driver's table. A comment identifies them in pg_stat_statements.
func (c *Config) own() []*statement {
	key := parameter{theKey, inBinary}
	value, oid, element, result := parameter{theValue, inBinary}, uint32(byteaOID), "$2", byte(inBinary)
	if c.Column == jsonb {
		value, oid, element, result = parameter{theValue, inText}, jsonbOID, "jsonb_build_array($2::jsonb)", inText
	}
	insert := "INSERT INTO " + c.Table + " (key, value) VALUES ($1, "
	update := ") ON CONFLICT (key) DO UPDATE SET value = "
	return []*statement{
		{
			verb: driver.Get, name: "get", sql: marked("get") + "SELECT value FROM " + c.Table + " WHERE key = $1",
			parameters: []parameter{key}, oids: []uint32{byteaOID}, result: result, none: driver.Miss,
		},
		{
			verb: driver.Put, name: "put", sql: marked("put") + insert + "$2" + update + "excluded.value",
			parameters: []parameter{key, value}, oids: []uint32{byteaOID, oid},
		},
		{
			verb: driver.Delete, name: "delete", sql: marked("delete") + "DELETE FROM " + c.Table + " WHERE key = $1",
			parameters: []parameter{key}, oids: []uint32{byteaOID}, none: driver.Miss,
		},
		{
			verb: driver.Append, name: "append", sql: marked("append") + insert + element + update + c.Table + ".value || excluded.value",
			parameters: []parameter{key, value}, oids: []uint32{byteaOID, oid},
		},
	}
}

// marked returns the comment that a verb's statement begins with.
func marked(verb string) string { return "/* loadgen " + verb + " */ " }
