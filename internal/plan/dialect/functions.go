package dialect

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// secretName is the function that only a driver's attributes may call.
const secretName = "secret"

// SecretNames matches valid names of secrets: LOADGEN_SECRET_NAME must be an environment variable.
var SecretNames = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

// WriteSecret says how to write a secret.
const WriteSecret = `Write password = secret("NAME") and set LOADGEN_SECRET_NAME where the load runs.`

// Functions returns the functions that expressions in plans, including asserts, may call. They are pure and bounded: from arguments
// within these bounds, none returns a string of more than 4 KiB or a collection of more than 10,000 elements. The caller owns the map.
//
// Besides functions of HCL's standard library there are duration, size, rate and percent. Each converts a quantity's text to a number in its base
// unit: seconds, bytes, per second, or a share.
func Functions() map[string]function.Function {
	return map[string]function.Function{
		"duration": quantity(func(text string) (cty.Value, error) {
			d, err := ParseDuration(text)
			return cty.NumberFloatVal(d.Seconds()), err
		}),
		"size": quantity(func(text string) (cty.Value, error) {
			n, err := ParseSize(text)
			return cty.NumberIntVal(n), err
		}),
		"rate": quantity(func(text string) (cty.Value, error) {
			r, err := ParseRate(text)
			return cty.NumberFloatVal(r), err
		}),
		"percent": quantity(func(text string) (cty.Value, error) {
			p, err := ParseShare(text)
			return cty.NumberFloatVal(p), err
		}),
		"abs":      stdlib.AbsoluteFunc,
		"ceil":     stdlib.CeilFunc,
		"coalesce": stdlib.CoalesceFunc,
		"concat":   stdlib.ConcatFunc,
		"contains": stdlib.ContainsFunc,
		"floor":    stdlib.FloorFunc,
		"format":   formatFunc(),
		"join":     joinFunc(),
		"kv_bytes": kvBytesFunc(),
		"length":   stdlib.LengthFunc,
		"lower":    stdlib.LowerFunc,
		"max":      stdlib.MaxFunc,
		"min":      stdlib.MinFunc,
		"range":    rangeFunc(),
		"tonumber": stdlib.MakeToFunc(cty.Number),
		"tostring": stdlib.MakeToFunc(cty.String),
		"upper":    stdlib.UpperFunc,
	}
}

// HasUnit says whether an expression, or a local that it refers to, calls duration or size.
func (r *Reader) HasUnit(x hclsyntax.Expression) (has bool) {
	ls, _ := r.roots["local"].(*locals)
	_ = hclsyntax.VisitAll(x, func(node hclsyntax.Node) hcl.Diagnostics {
		switch node := node.(type) {
		case *hclsyntax.FunctionCallExpr:
			has = has || node.Name == "duration" || node.Name == "size"
		case *hclsyntax.ScopeTraversalExpr:
			if ls == nil || node.Traversal.RootName() != "local" || len(node.Traversal) == 1 {
				break
			}
			if name, ok := node.Traversal[1].(hcl.TraverseAttr); ok && ls.list[name.Name] != nil {
				has = has || ls.list[name.Name].unit
			}
		}
		return nil
	})
	return has
}

// DriverFunctions returns the functions that a driver's attributes may call.
func DriverFunctions() map[string]function.Function {
	fs := Functions()
	fs[secretName] = function.New(&function.Spec{
		Params: []function.Parameter{{Name: "name", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Object(map[string]cty.Type{"secret": cty.String})),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if !SecretNames.MatchString(args[0].AsString()) {
				return cty.NilVal, function.NewArgErrorf(0, "a secret's name is capital letters, digits and _, such as REDIS_PASSWORD")
			}
			return cty.ObjectVal(map[string]cty.Value{"secret": args[0]}), nil
		},
	})
	return fs
}

// quantity makes a function from text to number.
func quantity(parse func(string) (cty.Value, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, err := parse(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return v, nil
		},
	})
}

// rangeFunc is range(end), range(start, end) and range(start, end, step): numbers from start (0) up to but not including end.
// Unlike HCL's own, it counts the numbers before it makes them.
func rangeFunc() function.Function {
	return function.New(&function.Spec{
		VarParam: &function.Parameter{Name: "limits", Type: cty.Number},
		Type:     function.StaticReturnType(cty.List(cty.Number)),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if len(args) < 1 || len(args) > 3 {
				return cty.NilVal, fmt.Errorf("range has one to three arguments: range(end), range(start, end), range(start, end, step)")
			}
			for i, a := range args {
				if !finite(a) {
					return cty.NilVal, function.NewArgErrorf(i, "the number is too large")
				}
			}
			start, end, step := cty.Zero, args[0], cty.NumberIntVal(1)
			if len(args) > 1 {
				start, end = args[0], args[1]
			}
			if len(args) > 2 {
				step = args[2]
			}
			if step.LessThanOrEqualTo(cty.Zero).True() {
				return cty.NilVal, function.NewArgErrorf(2, "the step must be above 0")
			}
			return numbers(start, end, step)
		},
	})
}

func numbers(start, end, step cty.Value) (cty.Value, error) {
	if end.Subtract(start).GreaterThan(step.Multiply(cty.NumberIntVal(maxCollection))).True() {
		return cty.NilVal, fmt.Errorf("more than %d numbers", maxCollection)
	}
	var list []cty.Value
	for v := start; v.LessThan(end).True() && len(list) < maxCollection; v = v.Add(step) {
		list = append(list, v)
	}
	if len(list) == 0 {
		return cty.ListValEmpty(cty.Number), nil
	}
	return cty.ListVal(list), nil
}

// joinFunc is join(separator, list).
func joinFunc() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{
			{Name: "separator", Type: cty.String},
			{Name: "list", Type: cty.DynamicPseudoType}, // HCL's conversion to a list of strings takes quadratic time
		},
		Type: function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			separator := ""
			var b strings.Builder
			words, err := Texts(args[1])
			if err != nil {
				return cty.NilVal, function.NewArgError(1, err)
			}
			for _, w := range words {
				b.WriteString(separator + w)
				separator = args[0].AsString()
				if b.Len() > MaxString {
					return cty.NilVal, fmt.Errorf("the string would be longer than %d bytes", MaxString)
				}
			}
			return cty.StringVal(b.String()), nil
		},
	})
}

// Texts returns the elements of a list, tuple or set as strings.
func Texts(v cty.Value) ([]string, error) {
	if !v.Type().IsListType() && !v.Type().IsTupleType() && !v.Type().IsSetType() {
		return nil, fmt.Errorf("%s is not a list", Describe(v))
	}
	words := make([]string, 0, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		_, element := it.Element()
		s, err := convert.Convert(element, cty.String)
		if err != nil || s.IsNull() {
			return nil, fmt.Errorf("the list holds %s", Describe(element))
		}
		words = append(words, s.AsString())
	}
	return words, nil
}

// formatVerb matches a percent sign, flags, width, precision and the verb.
var formatVerb = regexp.MustCompile(`^%([-+ 0#]*)([0-9]{0,4})(\.[0-9]{1,4})?([sdfgexXq%])`)

// formatFunc is format(text, values…) with the verbs %s %q %d %x %X %f %e %g of fmt and %%. There are no argument indices and no
// widths by argument, so that the result's length is known before it is made.
func formatFunc() function.Function {
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: "text", Type: cty.String}},
		VarParam: &function.Parameter{Name: "values", Type: cty.DynamicPseudoType},
		Type:     function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			text, err := format(args[0].AsString(), args[1:])
			if err != nil {
				return cty.NilVal, err
			}
			return cty.StringVal(text), nil
		},
	})
}

func format(text string, values []cty.Value) (string, error) {
	var b strings.Builder
	used := 0
	for text != "" {
		literal, rest, _ := strings.Cut(text, "%")
		b.WriteString(literal)
		text = text[len(literal):]
		if text == "" {
			break
		}
		m := formatVerb.FindStringSubmatch(text)
		switch {
		case m == nil || tooWide(m[2]) || tooWide(strings.TrimPrefix(m[3], ".")):
			return "", function.NewArgErrorf(0, "%s is not a verb it knows: %%s %%q %%d %%x %%X %%f %%e %%g %%%%, widths to %d", Quote("%"+rest), MaxString)
		case m[4] == "%":
			b.WriteByte('%')
		case used == len(values):
			return "", function.NewArgErrorf(0, "more verbs than values")
		default:
			s, err := formatOne(m[0], m[4][0], values[used])
			if err != nil {
				return "", function.NewArgError(used+1, err)
			}
			b.WriteString(s)
			used++
		}
		if text = text[len(m[0]):]; b.Len() > MaxString {
			return "", fmt.Errorf("the string would be longer than %d bytes", MaxString)
		}
	}
	if used < len(values) {
		return "", fmt.Errorf("%d values, but %d verbs", len(values), used)
	}
	return b.String(), nil
}

func tooWide(digits string) bool { return len(digits) == 4 && digits > "4096" }

// formatOne formats a value by one verb.
func formatOne(directive string, verb byte, v cty.Value) (string, error) {
	want := cty.Number
	if verb == 's' || verb == 'q' {
		want = cty.String
	}
	v, err := convert.Convert(v, want)
	switch {
	case err != nil:
		return "", err
	case v.IsNull():
		return "", fmt.Errorf("the value is null")
	case want == cty.String:
		return fmt.Sprintf(directive, v.AsString()), nil
	case !finite(v):
		return "", fmt.Errorf("the number is too large")
	}
	if verb == 'd' || verb == 'x' || verb == 'X' {
		n, accuracy := v.AsBigFloat().Int64()
		if accuracy != 0 {
			return "", fmt.Errorf("%%%c needs a whole number below 2^63", verb)
		}
		return fmt.Sprintf(directive, n), nil
	}
	f, _ := v.AsBigFloat().Float64()
	return fmt.Sprintf(directive, f), nil
}
