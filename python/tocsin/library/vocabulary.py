"""The words and codes of the library. Written by tools/docs from `tocsin schema vocabulary`."""

MODES = {"global": 0, "train": 1, "eval": 2, "predict": 3}

DTYPES = {"unknown": 0, "f32": 1, "f64": 2, "f16": 3, "bf16": 4, "f8_e4m3": 5, "f8_e5m2": 6,
          "i8": 10, "i16": 11, "i32": 12, "i64": 13, "u8": 20, "u16": 21, "u32": 22, "u64": 23,
          "bool": 30, "c64": 31, "c128": 32, "text": 40}

ROLES = {"other": 0, "weight": 1, "bias": 2, "gradient": 3, "loss": 4, "metric": 5, "input": 6,
         "output": 7, "activation_in": 8, "activation_out": 9, "optimizer": 10, "label": 11,
         "prediction": 12, "importance": 13, "shap": 14, "tree": 15, "hyperparameter": 16,
         "ledger": 17}

COLLECTIONS = ("all", "default", "weights", "biases", "gradients", "losses", "metrics", "inputs",
               "outputs", "layers", "optimizer_variables", "hyperparameters", "predictions",
               "labels", "feature_importance", "average_shap", "full_shap", "trees", "ledger")

STATISTICS = ("median", "prod", "quantiles", "delta", "delta_excess", "units", "saturation",
              "at_least", "depth", "abs_min", "abs_median", "abs_prod", "digest", "channels",
              "values", "classes", "histogram")

COLLECTIONS_OF = {"weight": ("weights",), "bias": ("biases",), "gradient": ("gradients",),
                  "loss": ("losses",), "metric": ("metrics",), "input": ("inputs",),
                  "output": ("outputs",), "activation_in": ("layers",),
                  "activation_out": ("layers",), "optimizer": ("optimizer_variables",),
                  "label": ("outputs", "labels",), "prediction": ("outputs", "predictions",),
                  "importance": ("feature_importance",), "shap": ("full_shap",), "tree": ("trees",),
                  "hyperparameter": ("hyperparameters",), "ledger": ("ledger",)}
