export default {
  async run({ fahrenheit }) {
    const celsius = Math.round(((fahrenheit - 32) * 50) / 9) / 10;
    return { celsius, text: `${celsius} °C` };
  },
};
