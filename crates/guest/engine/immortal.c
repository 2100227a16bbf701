
/* --- Objects of the snapshot, which live as long as the isolate --- */

static void js_make_string_immortal(JSValueConst value)
{
    if (JS_VALUE_GET_TAG(value) == JS_TAG_STRING)
        JS_REF_COUNT(JS_VALUE_GET_PTR(value)) = JS_IMMORTAL;
}

static void js_make_strings_immortal(JSGCObjectHeader *header)
{
    int i;

    switch (JS_GC_TYPE(header)) {
    case JS_GC_OBJ_TYPE_JS_OBJECT:
        {
            JSObject *object = (JSObject *)header;
            JSShapeProperty *property = get_shape_prop(object->shape);
            for (i = 0; i < object->shape->prop_count; i++, property++) {
                if (property->atom != JS_ATOM_NULL && (property->flags & JS_PROP_TMASK) == JS_PROP_NORMAL)
                    js_make_string_immortal(object->prop[i].u.value);
            }
        }
        break;
    case JS_GC_OBJ_TYPE_FUNCTION_BYTECODE:
        {
            JSFunctionBytecode *function = (JSFunctionBytecode *)header;
            for (i = 0; i < function->cpool_count; i++)
                js_make_string_immortal(function->cpool[i]);
        }
        break;
    case JS_GC_OBJ_TYPE_VAR_REF:
        {
            JSVarRef *variable = (JSVarRef *)header;
            if (variable->is_detached)
                js_make_string_immortal(variable->value);
        }
        break;
    default:
        break;
    }
}

/* Everything that there is now is neither counted nor looked at by the cycle collector from now on. What it refers to later is
   alive as long as it is referred to: a reference from an object that the collector does not know counts as one from outside.
   A shape that belongs to one object stays counted, because only a count of 1 allows it to be changed in place. */
void JS_MakeImmortal(JSRuntime *rt);
void JS_MakeImmortal(JSRuntime *rt)
{
    static struct list_head immortal;
    struct list_head *el, *el1;
    int i;

    init_list_head(&immortal);
    list_for_each_safe(el, el1, &rt->gc_obj_list) {
        JSGCObjectHeader *header = list_entry(el, JSGCObjectHeader, link);
        js_make_strings_immortal(header);
        if (JS_GC_TYPE(header) == JS_GC_OBJ_TYPE_SHAPE && !((JSShape *)header)->is_hashed)
            continue;
        JS_REF_COUNT(header) = JS_IMMORTAL;
        list_del(el);
        list_add_tail(el, &immortal);
    }
    for (i = 0; i < rt->atom_size; i++) {
        JSAtomStruct *atom = rt->atom_array[i];
        if (!atom_is_free(atom))
            JS_REF_COUNT(atom) = JS_IMMORTAL;
    }
}
