
/* Whether JavaScript may make code of text: eval and the function constructors all come through JS_EvalObject. */
void JS_SetCodeOfText(JSRuntime *rt, int is_allowed);
void JS_SetCodeOfText(JSRuntime *rt, int is_allowed)
{
    rt->code_of_text = is_allowed != 0;
}

static JSValue js_throw_eval_error(JSContext *ctx, const char *format, ...)
{
    JSValue thrown;
    va_list arguments;

    va_start(arguments, format);
    thrown = JS_ThrowError(ctx, JS_EVAL_ERROR, format, arguments);
    va_end(arguments);
    return thrown;
}

static JSValue js_refuse_text(JSContext *ctx)
{
    return js_throw_eval_error(ctx, "Code generation from strings disallowed for this context");
}
