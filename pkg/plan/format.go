package plan

import (
	"bytes"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/loadgen/loadgen/internal/lang"
)

// Format returns the text of a plan in the layout that HCL's own tools give it: two spaces for each level, equals signs of neighbouring
// lines one below the other. Comments and the order of things stay. A text that is not HCL, or breaks a bound of the guard, is not
// touched; what else is wrong in it does not matter. Format of a formatted text is the same text.
func Format(src []byte, filename string) ([]byte, hcl.Diagnostics) {
	if d := lang.Guard(src, filename); d != nil {
		return nil, hcl.Diagnostics{d}
	}
	var r lang.Reporter
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
