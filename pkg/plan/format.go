package plan

import (
	"bytes"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/loadgen/loadgen/internal/plan/dialect"
)

// Format returns the text of a plan in the layout of HCL's own tools: two spaces for each level, equals signs of neighbouring lines
// aligned. Comments and order stay. It is idempotent. A text that is not HCL, or breaks a bound of the guard, is an error; other
// mistakes in it do not matter.
func Format(src []byte, filename string) ([]byte, hcl.Diagnostics) {
	if d := dialect.Guard(src, filename); d != nil {
		return nil, hcl.Diagnostics{d}
	}
	var r dialect.Reporter
	_, diags := hclsyntax.ParseConfig(src, filename, hcl.InitialPos)
	r.Adopt("", hcl.Range{Filename: filename, Start: hcl.InitialPos, End: hcl.InitialPos}, diags)
	if r.Failed() {
		return nil, r.Result()
	}
	text := hclwrite.Format(src)
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n')
	}
	return text, nil
}
