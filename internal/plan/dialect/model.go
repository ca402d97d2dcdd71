package dialect

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// kvBytesFunc is kv_bytes(model): the bytes that a language model's attention keeps of a token, in all layers. model has the names of its config.json.
// With kv_lora_rank a token has one compressed entry in each layer, otherwise a key and a value for each KV head.
func kvBytesFunc() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "model", Type: cty.DynamicPseudoType}},
		Type:   function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			n, err := kvBytes(args[0])
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.NumberIntVal(n), nil
		},
	})
}

func kvBytes(model cty.Value) (int64, error) {
	if t := model.Type(); model.IsNull() || !t.IsObjectType() && !t.IsMapType() {
		return 0, fmt.Errorf("write what the model's config.json says, such as {num_hidden_layers = 32, num_key_value_heads = 8, head_dim = 128}")
	}
	values, wrong := model.AsValueMap(), error(nil)
	get := func(name string) int64 {
		v, ok := values[name]
		if !ok || v.IsNull() {
			return 0
		}
		n := int64(0)
		if v.Type() == cty.Number && v.AsBigFloat().IsInt() {
			n, _ = v.AsBigFloat().Int64()
		}
		if n < 1 || n > 1<<20 {
			wrong = fmt.Errorf("%s is %s: want a whole number from 1 to 1048576", name, Describe(v))
		}
		return n
	}
	layers, heads, dim, bytes := get("num_hidden_layers"), get("num_key_value_heads"), get("head_dim"), get("bytes")
	all, hidden, rank, rope := get("num_attention_heads"), get("hidden_size"), get("kv_lora_rank"), get("qk_rope_head_dim")
	if bytes == 0 {
		bytes = 2
	}
	if heads == 0 {
		heads = all
	}
	if dim == 0 && all > 0 {
		dim = hidden / all
	}
	each := 2 * heads * dim
	if rank > 0 {
		each = rank + rope
	}
	switch n := float64(layers) * float64(each) * float64(bytes); {
	case wrong != nil:
		return 0, wrong
	case layers == 0:
		return 0, fmt.Errorf("no num_hidden_layers")
	case each == 0:
		return 0, fmt.Errorf("no num_key_value_heads and head_dim, nor hidden_size and num_attention_heads, nor kv_lora_rank")
	case n > 1<<40:
		return 0, fmt.Errorf("more than a TiB a token")
	}
	return layers * each * bytes, nil
}
